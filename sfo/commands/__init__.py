"""The commands of `sfo`: each parses, calls and prints."""
