"""Lets the pods of a Job enter each other by ssh: one key pair for all of them, in a secret that every container mounts.

Where a key comes from is the business of whoever runs the controller: the system's randomness on a real cluster
(`live/sshkeys.py`), the uid of the Job in a simulation (`sim/sshkeys.py`).
"""

from base64 import b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING

from phalanx.controllers.volcano_job.job import ParsedJob
from phalanx.controllers.volcano_job.plugins.plugin import JobPlugin, KeyPair, MakePair, PluginOptions, PodContext, owned_object
from phalanx.controllers.volcano_job.plugins.pod_edits import with_volume
from phalanx.model.kinds import Document

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

NAME, FOLDER, ROOT = "ssh", ".ssh", "/root/.ssh"
PATH, PORT, NO_ROOT = "ssh-key-file-path", "ssh-port", "no-root"
PRIVATE, PUBLIC, CONFIG, AUTHORIZED = "id_rsa", "id_rsa.pub", "config", "authorized_keys"
"""The default names of ssh; the kind of a key is in the file, so id_rsa may hold another kind than RSA."""
FOR_THE_OWNER, FOR_EVERYBODY = 0o600, 0o755


def edit_pod(context: PodContext, pod: Document) -> Document:
    """Mount the keys where ssh looks for them."""
    path = _path(context.options)
    files = [(PRIVATE, PRIVATE), (PUBLIC, PUBLIC), (PUBLIC, AUTHORIZED), (CONFIG, CONFIG)]
    items = [{"key": key, "path": f"{FOLDER}/{name}"} for key, name in files]
    mode = FOR_THE_OWNER if path == ROOT else FOR_EVERYBODY
    volume = {
        "name": secret_name(context.job),
        "secret": {"secretName": secret_name(context.job), "items": items, "defaultMode": mode},
    }
    return with_volume(pod, volume, {"mountPath": path, "subPath": FOLDER})


def objects(job: ParsedJob, options: PluginOptions, make_pair: MakePair | None) -> Sequence[Document]:
    """Return the secret with the keys and the configuration; a Job gets keys once, and one that has them needs nothing."""
    if make_pair is None:
        return []
    pair = make_pair(job.uid)
    texts = {PRIVATE: pair.private, PUBLIC: pair.public, CONFIG: configuration(job, options)}
    data = {name: b64encode(text.encode()).decode() for name, text in texts.items()}
    return [owned_object(job, "Secret", secret_name(job), {"type": "Opaque", "data": data})]


def configuration(job: ParsedJob, options: PluginOptions) -> str:
    """Return the ssh configuration with the hosts of all tasks; host keys are not checked, since pods come and go."""
    lines = ["StrictHostKeyChecking no", "UserKnownHostsFile /dev/null"]
    for host in (host for task in job.tasks for host in job.hosts(task)):
        lines += [f"Host {host.split('.')[0]}", f"  HostName {host}"]
        lines += [f"  Port {options.number(PORT)}"] if options.number(PORT) else []
    return "".join(f"{line}\n" for line in lines)


def secret_name(job: ParsedJob) -> str:
    """Return the name of the secret."""
    return f"{job.name}-{NAME}"


def key_pair(key: "Ed25519PrivateKey", comment: str) -> KeyPair:
    """Return both files of a key as OpenSSH writes them, the private one without a passphrase."""
    # Imported here because it takes some 80 ms, and few clusters have Jobs that need it.
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return KeyPair(private.decode(), f"{public.decode()} {comment}\n")


def _path(options: PluginOptions) -> str:
    path = options.text(PATH)
    return f"/etc/volcano/{FOLDER}" if options.is_on(NO_ROOT) and path == ROOT else path


PLUGIN = JobPlugin(NAME, {PATH: ROOT, PORT: 0, NO_ROOT: False}, edit_pod, objects)
