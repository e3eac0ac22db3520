"""Files and servers of others: nothing outside is read, nothing is believed that is not checked."""

import http.server
import threading

import h5py
import numpy as np
import pytest

from sfo.data.doctor import examine
from sfo.data.download import DownloadError, _unrecognised, download
from sfo.data.hdf5 import DataFile, DataFileError
from sfo.data.published import PUBLISHED, PublishedFile
from sfo.data.sources import load_inputs, open_data


@pytest.fixture
def secret(tmp_path):
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["tensor"] = np.ones((2, 3, 8), "f4")
        file["a"] = np.ones((2, 1, 8), "f4")
    (tmp_path / "raw").write_bytes(bytes(4 * 2 * 3 * 8))
    return tmp_path


def linked(folder, key, kind):
    path = folder / f"{kind}.h5"
    with h5py.File(path, "w") as file:
        if kind == "link":
            file[key] = h5py.ExternalLink("secret.h5", key)
        elif kind == "storage":
            shape = (2, 3, 8)
            file.create_dataset(key, shape, "f4", external=[(str(folder / "raw"), 0, 192)])
        else:
            layout = h5py.VirtualLayout((2, 3, 8), "f4")
            layout[:] = h5py.VirtualSource(str(folder / "secret.h5"), "tensor", (2, 3, 8))
            file.create_virtual_dataset(key, layout)
    return path


@pytest.mark.parametrize("kind", ["link", "storage", "virtual"])
def test_no_other_file_is_read(secret, kind):
    path = linked(secret, "tensor", kind)
    with pytest.raises(DataFileError, match="in another file; copy it into one"):
        DataFile(path)
    assert "in another file" in str(examine(path))
    path = linked(secret, "a", kind)
    with pytest.raises(DataFileError, match="in another file"):
        load_inputs(path)


def test_groups_are_not_followed_either(secret):
    with h5py.File(secret / "groups.h5", "w") as file:
        file["0000/data"] = np.ones((2, 3), "f4")
        file["0001"] = h5py.ExternalLink("secret.h5", "/")
    with pytest.raises(DataFileError, match="keeps `0001` in another file"):
        DataFile(secret / "groups.h5")


def test_a_size_that_no_file_holds_is_refused_at_once(tmp_path):
    """2^40 samples in 2 kB kept `sfo doctor` busy for minutes."""
    for key in ("tensor", "a", "u"):
        with h5py.File(tmp_path / "huge.h5", "a") as file:
            file.create_dataset(key, (2**40, 3, 8), "f4", chunks=(1, 3, 8))
    assert "hardly anything of it is stored" in str(examine(tmp_path / "huge.h5"))
    with pytest.raises(DataFileError, match="hardly anything"):
        open_data(tmp_path / "huge.h5")


def test_a_redirect_to_another_protocol_is_refused(tmp_path):
    class Redirect(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(302)
            self.send_header("Location", "ftp://127.0.0.1:9/file.h5")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Redirect) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        file = PublishedFile("waves", "waves.h5", address, 3, None, None, "", "")
        with pytest.raises(DownloadError, match=r"redirects to ftp://.*neither http nor https"):
            download("waves", tmp_path, published={"waves": file}, attempts=1)
        server.shutdown()


def test_without_a_checksum_the_contents_are_recognised(tmp_path):
    """Any bytes with the signature of HDF5 became the Allen–Cahn file."""
    published = PUBLISHED["allen_cahn"]
    assert published.md5 is None
    (tmp_path / "file").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    assert "is not a file of allen_cahn" in _unrecognised(tmp_path / "file", published)
    with h5py.File(tmp_path / "other", "w") as file:
        file["tensor"] = np.random.default_rng(0).normal(size=(3, 4, 16)).astype("f4")
        file["x-coordinate"], file["t-coordinate"] = np.linspace(0, 1, 16), np.arange(4.0)
    assert "is not a file of allen_cahn" in _unrecognised(tmp_path / "other", published)
