"""What the Hugging Face Hub's HTTP interface does for one model, on the loopback address."""

import base64
import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlparse


class Hub:
    """Repositories as {name: [{path: content}, …]}, a list of commits."""

    def __init__(self):
        self.repositories, self.requests, self.private = {}, [], {}

    def commits(self, name):
        return {self.oid(name, i): files for i, files in enumerate(self.repositories[name])}

    def oid(self, name, index):
        return hashlib.sha1(f"{name}{index}".encode()).hexdigest()

    def find(self, name, revision):
        """The commit's id and files, or the hub's code for what is missing."""
        if name not in self.repositories:
            return "RepoNotFound"
        commits = self.commits(name)
        oid = list(commits)[-1] if revision == "main" else revision
        return (oid, commits[oid]) if oid in commits else "RevisionNotFound"


def handler(hub):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *arguments):
            pass

        def answer(self, status, content=b"", **headers):
            if not isinstance(content, bytes):
                content = json.dumps(content).encode()
                headers.setdefault("Content_Type", "application/json")
            self.send_response(status)
            for key, value in {"Content_Length": len(content), **headers}.items():
                self.send_header(key.replace("_", "-"), str(value))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def missing(self, code):
            self.answer(404, {"error": code}, X_Error_Code=code, X_Error_Message=code)

        def do_HEAD(self):
            self.do_GET()

        def do_GET(self):
            path = unquote(urlparse(self.path).path).strip("/")
            hub.requests.append((self.command, path))
            parts = path.split("/")
            if parts[:2] == ["api", "models"]:
                found = hub.find("/".join(parts[2:4]), parts[5] if len(parts) > 5 else "main")
                if isinstance(found, str):
                    return self.missing(found)
                oid, files = found
                rows = [
                    {"type": "file", "path": p, "size": len(c), "oid": oid}
                    for p, c in files.items()
                ]
                info = {"id": "/".join(parts[2:4]), "sha": oid}
                info["siblings"] = [{"rfilename": p} for p in files]
                return self.answer(200, rows if "tree" in parts else info)
            name, revision, file = "/".join(parts[:2]), parts[3], "/".join(parts[4:])
            found = hub.find(name, revision)
            if isinstance(found, str):
                return self.missing(found)
            oid, files = found
            if file not in files:
                return self.answer(404, X_Error_Code="EntryNotFound", X_Repo_Commit=oid)
            etag = hashlib.sha1(files[file]).hexdigest()
            return self.answer(200, files[file], ETag=f'"{etag}"', X_Repo_Commit=oid)

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            path = unquote(urlparse(self.path).path).strip("/")
            hub.requests.append((self.command, path))
            if self.headers.get("Authorization") != "Bearer hf_test":
                return self.answer(401, {"error": "Unauthorized"})
            address = f"http://{self.headers['Host']}"
            if path == "api/repos/create":
                entry = json.loads(body)
                name = f"{entry['organization']}/{entry['name']}"
                status = 409 if name in hub.repositories else 200
                hub.repositories.setdefault(name, [{}])
                hub.private.setdefault(name, entry.get("private", entry.get("visibility")))
                return self.answer(status, {"url": f"{address}/{name}", "id": name, "name": name})
            if path == "api/validate-yaml":
                return self.answer(200, {"errors": [], "warnings": []})
            parts = path.split("/")
            name = "/".join(parts[2:4])
            if parts[4] == "preupload":
                files = [
                    {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False}
                    for f in json.loads(body)["files"]
                ]
                return self.answer(200, {"files": files})
            files = dict(hub.repositories[name][-1])
            for line in body.decode().splitlines():
                entry = json.loads(line)
                value = entry["value"]
                if entry["key"] == "file":
                    files[value["path"]] = base64.b64decode(value["content"])
                elif entry["key"] == "deletedFile":
                    del files[value["path"]]
            hub.repositories[name].append(files)
            oid = hub.oid(name, len(hub.repositories[name]) - 1)
            url = f"{address}/{name}/commit/{oid}"
            return self.answer(200, {"success": True, "commitOid": oid, "commitUrl": url})

    return Handler


@contextmanager
def serving():
    """A hub and its address."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(hub))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
