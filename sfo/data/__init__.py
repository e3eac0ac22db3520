"""Data: trajectories, files, generation and pairs."""

from sfo.data import catalogue as catalogue
from sfo.data.arrays import Arrays
from sfo.data.hdf5 import DataFile, DataFileError
from sfo.data.load import (
    benchmark_path,
    data_folder,
    file_pairs,
    file_split,
    load_benchmark,
    load_file,
)
from sfo.data.pairs import Pairs, Split
from sfo.data.sources import open_data
from sfo.data.trajectories import Trajectories

__all__ = [
    "Arrays",
    "DataFile",
    "DataFileError",
    "Pairs",
    "Split",
    "Trajectories",
    "benchmark_path",
    "data_folder",
    "file_pairs",
    "file_split",
    "load_benchmark",
    "load_file",
    "open_data",
]
