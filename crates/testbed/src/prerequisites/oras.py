import json, os, sys
from oras.client import OrasClient

source, target, through = sys.argv[1:]
client = OrasClient(hostname=source.split("/")[0], insecure=True)
manifest = client.get_manifest(source)
for blob in [manifest["config"]] + manifest["layers"]:
    path = os.path.join(through, blob["digest"].split(":")[1])
    client.download_blob(client.get_container(source), blob["digest"], path)
    client._check_200_response(client.upload_blob(path, client.get_container(target), blob))
client._check_200_response(client.upload_manifest(manifest, client.get_container(target)))
json.dump(manifest, sys.stdout)
