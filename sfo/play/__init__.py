"""The playground: a local page that shows solver, operator and error side by side."""
