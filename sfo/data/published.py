"""The data files as their authors published them: names, addresses, sizes and checksums."""

import hashlib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PublishedFile:
    """A data file as its authors published it.

    Args:
        name: Name of the benchmark.
        file_name: On disk.
        address: Where a program can fetch it, None if only a person with a browser can.
        size: In bytes. None, as for the checksums: not known.
        md5: In hexadecimal digits.
        sha256: In hexadecimal digits.
        licence: Licence of the data.
        note: Where the file comes from and, without an address, how to get it.
    """

    name: str
    file_name: str
    address: str | None
    size: int | None
    md5: str | None
    sha256: str | None
    licence: str
    note: str

    def fault(self, path: Path) -> str | None:
        """What tells the file at `path` from this one, if anything does."""
        size = path.stat().st_size
        if self.size is not None and size != self.size:
            return f"has {size} bytes where {self.size} were published"
        expected = {"md5": self.md5, "sha256": self.sha256}
        digests = {
            kind: hashlib.new(kind, usedforsecurity=False)
            for kind, digest in expected.items()
            if digest is not None
        }
        with path.open("rb") as stream:
            if not digests and stream.read(8) != b"\x89HDF\r\n\x1a\n":
                return "does not start with the signature of an HDF5 file"
            while digests and (chunk := stream.read(2**20)):
                for digest in digests.values():
                    digest.update(chunk)
        for kind, digest in digests.items():
            if digest.hexdigest() != expected[kind]:
                return f"has the {kind} {digest.hexdigest()} where {expected[kind]} was published"
        return None


def _darus(
    name: str, file_name: str, number: int, size: int | None, md5: str, sha256: str | None
) -> PublishedFile:
    address = f"https://darus.uni-stuttgart.de/api/access/datafile/{number}"
    note = "Part of PDEBench, https://doi.org/10.18419/darus-2986."
    return PublishedFile(name, file_name, address, size, md5, sha256, "CC BY 4.0", note)


def _google_drive(name: str, file_name: str, number: str) -> PublishedFile:
    note = (
        f"Part of PDENNEval: open https://drive.google.com/file/d/{number}/view in a browser "
        f"and save the file under the name {file_name} in the data folder."
    )
    return PublishedFile(name, file_name, None, None, None, None, "not stated", note)


# MD5: PDEBench's list of its files. Sizes and SHA256: as others measured them.
PUBLISHED: dict[str, PublishedFile] = {
    file.name: file
    for file in (
        _google_drive(
            "allen_cahn", "1D_Allen-Cahn_0.0001_5.hdf5", "10Ee3EqcZyAE0s1Q_rO5XbrRwYZDYKf-o"
        ),
        _google_drive(
            "cahn_hilliard",
            "1D_Cahn-Hilliard_10e-6_0.01.hdf5",
            "10D25VbDAnYtEOxSO18pw_o_BteBn5MnB",
        ),
        _darus(
            "diffusion_reaction",
            "ReacDiff_Nu0.5_Rho1.0.hdf5",
            133177,
            size=4136968376,
            md5="69a429239778d529cd419ed5888ea835",
            sha256="0ccd649b1d5ecca8a5ae417a506dec5ef57ea365f7bce46afa190d34fe02dcc7",
        ),
        _darus(
            "diffusion_sorption",
            "1D_diff-sorp_NA_NA.h5",
            133020,
            size=None,
            md5="9d466d1213065619d087319e16d9a938",
            sha256=None,
        ),
        _google_drive("maxwell", "3D_Maxwell_10_1.h5", "11b3p8zqEu1vawtZkI1ThCSilYAz1Hyya"),
        _darus(
            "shallow_water",
            "2D_rdb_NA_NA.h5",
            133021,
            size=6626098972,
            md5="75d838c47aa410694bdc912ea7f22282",
            sha256="28f0c33723d70eebb420fc170e94b675c18e032fb697dcef080e114ca9645e3a",
        ),
    )
}
