#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests s3:// with moto, which checks signatures, or with a real server: versitygw, which is stricter, or
S3Proxy. Keys that people use; directories; checksums; writing.

    s3_peer.py COMMAND [VERSITYGW | S3PROXY.jar]

tests/peers/versitygw and tests/peers/s3proxy download these programs and run this test.
"""
import base64
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

command = os.path.abspath(sys.argv[1])
try:
    import boto3
    import botocore.config
    import moto  # noqa: F401
    import numpy
    from safetensors.numpy import save_file
except ImportError as missing:
    print("skipped:", missing)
    sys.exit(77)

JAVA = sys.argv[2:] and sys.argv[2].endswith(".jar")  # S3Proxy has no versions
bad = []
clean = {k: v for k, v in os.environ.items()
         if not re.match("AWS_|HF_|AZURE_|GOOGLE_|STORAGE_|TENFOLD_|.*_proxy$|.*_PROXY$", k)}
clean["AWS_EC2_METADATA_DISABLED"] = "true"
os.environ.clear()
os.environ.update(clean)


def check(condition, what):
    if not condition:
        bad.append(what)
        print("FAILED:", what)


def run(*args, env):
    done = subprocess.run([command, *args], capture_output=True, timeout=120, env={**clean, **env})
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def start(folder):
    """moto on a port of its own. The first six requests need no signature: they make a user."""
    code = ("import sys; from moto.server import ThreadedMotoServer; import time\n"
            "s = ThreadedMotoServer('127.0.0.1', 0, verbose=False); s.start(); print(s.get_host_and_port()[1], flush=True)\n"
            "sys.stdin.read()")
    server = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True,
                              env={**clean, "INITIAL_NO_AUTH_ACTION_COUNT": "4", "HOME": folder})
    return server, "http://127.0.0.1:%d" % int(server.stdout.readline())


def versitygw(program, port, folder):
    return [program, "--port", "127.0.0.1:%d" % port, "posix", "--versioning-dir", os.path.join(folder, "versions"),
            os.path.join(folder, "data")]


def s3proxy(jar, port, folder):
    settings = os.path.join(folder, "s3proxy.conf")
    with open(settings, "w") as f:
        f.write("s3proxy.authorization=aws-v2-or-v4\ns3proxy.endpoint=http://127.0.0.1:%d\ns3proxy.identity=AKROOT\n"
                "s3proxy.credential=s3cr3t-of-root\njclouds.provider=filesystem-nio2\njclouds.filesystem.basedir=%s\n"
                % (port, os.path.join(folder, "data")))
    return ["java", "-jar", jar, "--properties", settings]


def start_real(program, folder):
    """A directory served as buckets, with one user."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    for name in ("data", "versions"):
        os.mkdir(os.path.join(folder, name))
    server = subprocess.Popen((s3proxy if JAVA else versitygw)(program, port, folder),
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env={**clean, "ROOT_ACCESS_KEY": "AKROOT", "ROOT_SECRET_KEY": "s3cr3t-of-root"})
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            break
        except OSError:
            time.sleep(0.05)
    return server, "http://127.0.0.1:%d" % port


def make_client(endpoint, service, id_="x", secret="x"):
    return boto3.client(service, endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id=id_,
                        aws_secret_access_key=secret, config=botocore.config.Config(s3={"addressing_style": "path"}))


def make_user(endpoint):
    def client(service, **keys):
        return make_client(endpoint, service, *keys.values())
    iam = client("iam")
    iam.create_user(UserName="u")
    policy = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    arn = iam.create_policy(PolicyName="p", PolicyDocument=json.dumps(policy))["Policy"]["Arn"]
    iam.attach_user_policy(UserName="u", PolicyArn=arn)
    key = iam.create_access_key(UserName="u")["AccessKey"]
    keys = {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}
    return client("s3", **keys), key


def test_keys(s3, env, file, local):
    """Unusual names; each is signed in the form in which it is sent."""
    for name in ["plain.safetensors", "a b.safetensors", "dt=1/x.safetensors", "p+q.safetensors",
                 "100%.safetensors", "ü/ö.safetensors", "a*b(c)'d!.safetensors", "x~y,z;.safetensors"]:
        s3.upload_file(file, "bucket", name)
        code, out, err = run("hash", "s3://bucket/" + name, env=env)
        check(code == 0 and out.split()[0] == local, "%s: %s" % (name, err))


def test_refusals(s3, env, file):
    wrong = {**env, "AWS_SECRET_ACCESS_KEY": "wrong" * 8}
    code, out, err = run("info", "s3://bucket/plain.safetensors", env=wrong)
    check(code == 3 and "403" in err and "SignatureDoesNotMatch" in err, "a wrong secret: " + err)
    check("wrong" not in err, "a secret was printed")
    nobody = {k: v for k, v in env.items() if "KEY" not in k}
    code, out, err = run("info", "s3://bucket/plain.safetensors", env=nobody)
    check(code == 3 and "no credentials were sent" in err, "nobody: " + err)
    code, out, err = run("info", "s3://bucket/none.safetensors", env=env)
    check(code == 3 and "404" in err and "NoSuchKey" in err, "no such key: " + err)
    code, out, err = run("info", "s3://nobucket/none.safetensors", env=env)
    check(code == 3 and "404" in err, "no such bucket: " + err)


def test_profile(s3, env, key, folder):
    path = os.path.join(folder, "credentials")
    with open(path, "w") as f:
        f.write("[default]\naws_access_key_id = no\naws_secret_access_key = no\n\n[work]\n"
                "aws_access_key_id=%s\naws_secret_access_key = %s\n" % (key["AccessKeyId"], key["SecretAccessKey"]))
    mine = {k: v for k, v in env.items() if "KEY" not in k}
    mine.update(AWS_SHARED_CREDENTIALS_FILE=path, AWS_PROFILE="work")
    code, out, err = run("info", "s3://bucket/plain.safetensors", env=mine)
    check(code == 0, "a profile: " + err)


def test_folder(s3, env, folder):
    """A model is opened by its directory."""
    names = {}
    for i in range(3):
        name = "model-%05d-of-00003.safetensors" % (i + 1)
        save_file({"t%d" % i: numpy.full((100, 10), i, "f4")}, os.path.join(folder, name))
        s3.upload_file(os.path.join(folder, name), "bucket", "m dir/v=1/" + name)
        names["t%d" % i] = name
    index = json.dumps({"metadata": {"total_size": 12000}, "weight_map": names})
    s3.put_object(Bucket="bucket", Key="m dir/v=1/model.safetensors.index.json", Body=index)
    code, out, err = run("ls", "--json", "s3://bucket/m dir/v=1/", env=env)
    check(code == 0 and len(json.loads(out)["tensors"]) == 3, "a folder: %s %s" % (out, err))
    code, out, err = run("info", "s3://bucket/nothing/", env=env)
    check(code == 3 and "no tensor file" in err, "an empty folder: " + err)


def test_changed(s3, env, folder):
    """Two versions are never mixed: If-Match."""
    one = os.path.join(folder, "one.safetensors")
    save_file({"w": numpy.zeros((1000, 1000), "f4")}, one)
    s3.upload_file(one, "bucket", "versioned.safetensors")
    code, out, err = run("hash", "s3://bucket/versioned.safetensors", env=env)
    check(code == 0, "before: " + err)
    if JAVA:
        return
    s3.put_bucket_versioning(Bucket="bucket", VersioningConfiguration={"Status": "Enabled"})
    first = s3.put_object(Bucket="bucket", Key="v.safetensors", Body=open(one, "rb").read())["VersionId"]
    s3.put_object(Bucket="bucket", Key="v.safetensors", Body=b"another")
    code, again, err = run("hash", "s3://bucket/v.safetensors?versionId=" + first, env=env)
    check(code == 0 and again.split()[0] == out.split()[0], "by its version: " + err)


def test_sums(s3, env, folder, file):
    """fetch and verify request the checksum of the object, by a signed request, and it matches."""
    data = open(file, "rb").read()
    sha = base64.b64encode(hashlib.sha256(data).digest()).decode()
    s3.put_object(Bucket="bucket", Key="sum/sha.safetensors", Body=data, ChecksumSHA256=sha)
    s3.put_object(Bucket="bucket", Key="sum/crc.safetensors", Body=data, ChecksumAlgorithm="CRC32")
    s3.put_object(Bucket="bucket", Key="sum/plain.safetensors", Body=data)
    told = s3.head_object(Bucket="bucket", Key="sum/sha.safetensors", ChecksumMode="ENABLED").get("ChecksumSHA256")
    check(told == sha or not len(sys.argv) > 2, "the server does not tell a checksum: %s" % told)  # moto does not
    for name in ("sha", "crc", "plain"):
        target = os.path.join(folder, "sum-" + name)
        code, out, err = run("--trace", "fetch", "s3://bucket/sum/%s.safetensors" % name, target, env=env)
        check(code == 0 and open("%s/%s.safetensors" % (target, name), "rb").read() == data, "%s: %s" % (name, err))
        check(re.search(r"^HEAD \S+: 200", err, re.M), "%s: its checksum was not told: %s" % (name, err))
        code, out, err = run("verify", "s3://bucket/sum/%s.safetensors" % name, env=env)
        check(code == 0, "verify of %s: %s" % (name, out + err))


def test_writing(s3, env, folder, file, local):
    """An object appears completely or not at all, and replaces another one only on request."""
    big = os.path.join(folder, "big.safetensors")
    save_file({"w": numpy.arange(5 << 20, dtype="f4")}, big)  # 20 MiB: three parts
    for source, key in [(file, "out/a b=c.safetensors"), (big, "out/big.safetensors")]:
        code, out, err = run("convert", source, "s3://bucket/" + key, env=env)
        check(code == 0, "convert to %s: %s" % (key, err))
        code, out, err = run("hash", "s3://bucket/" + key, env=env)
        check(code == 0 and out.split()[0] == run("hash", source, env={})[1].split()[0], "%s: %s" % (key, err))
        code, out, err = run("convert", source, "s3://bucket/" + key, env=env)
        check(code == 3 and "exists" in err, "again: " + err)
        code, out, err = run("convert", "--force", source, "s3://bucket/" + key, env=env)
        check(code == 0, "--force: " + err)
    check(not s3.list_multipart_uploads(Bucket="bucket").get("Uploads"), "an upload is left")
    code, out, err = run("convert", file, "s3://nobucket/x.safetensors", env=env)
    check(code == 3, "no bucket: " + err)
    code, out, err = run("convert", file, "http://127.0.0.1/x.safetensors", env=env)
    check(code == 4 and "only s3 objects can be written" in err, "http: " + err)
    target = os.path.join(folder, "fetched")
    code, out, err = run("fetch", "s3://bucket/out/", target, env=env)
    check(code == 0 and sorted(os.listdir(target)) == ["a b=c.safetensors", "big.safetensors"],
          "fetch of a folder: %s %s" % (out, err))


def test_plan(s3, env, folder):
    """The parts of a plan write an object as one upload."""
    big, plan = os.path.join(folder, "for-a-plan.safetensors"), os.path.join(folder, "plan.json")
    save_file({"w": numpy.arange(6 << 20, dtype="f4"), "v": numpy.arange(4 << 20, dtype="f4") * 3}, big)
    for key, more, source in (("plan/out.safetensors", (), big), ("plan/out.zt", (), big), ("plan/out.safetensors", ("--force",), big)):
        code, out, err = run("plan", source, "--for", "convert", "--out", "s3://bucket/" + key, "--parts", "3", "--json", *more, env=env)
        check(code == 0, "plan: " + err)
        with open(plan, "w") as f:
            f.write(out)
        for i in (2, 0, 1):
            code, out, err = run("convert", "--plan", plan, "--part", "%d/3" % i, env=env)
            check(code == 0, "part %d of %s: %s" % (i, key, err))
        check(len(s3.list_multipart_uploads(Bucket="bucket").get("Uploads", [])) == 1, "%s: not one upload" % key)
        code, out, err = run("finish", plan, env=env)
        check(code == 0, "finish of %s: %s" % (key, err))
        code, out, err = run("hash", "s3://bucket/" + key, env=env)
        check(code == 0 and out.split()[0] == run("hash", source, env={})[1].split()[0], "%s: %s" % (key, err))
        check(not s3.list_multipart_uploads(Bucket="bucket").get("Uploads"), "%s: an upload is left" % key)
    code, out, err = run("plan", big, "--for", "convert", "--out", "s3://bucket/plan/none.safetensors", "--parts", "3", "--json", env=env)
    with open(plan, "w") as f:
        f.write(out)
    code, out, err = run("convert", "--plan", plan, "--part", "1/3", env=env)
    check(code == 0 and run("finish", "--abort", plan, env=env)[0] == 0, "--abort: " + err)
    check(not s3.list_multipart_uploads(Bucket="bucket").get("Uploads"), "--abort: an upload is left")


def main():
    with tempfile.TemporaryDirectory() as folder:
        gateway = len(sys.argv) > 2
        server, endpoint = start_real(os.path.abspath(sys.argv[2]), folder) if gateway else start(folder)
        try:
            if gateway:
                key = {"AccessKeyId": "AKROOT", "SecretAccessKey": "s3cr3t-of-root"}
                s3 = make_client(endpoint, "s3", *key.values())
            else:
                s3, key = make_user(endpoint)
            env = {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
                   "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"], "AWS_REGION": "us-east-1"}
            s3.create_bucket(Bucket="bucket")
            file = os.path.join(folder, "m.safetensors")
            save_file({"w": numpy.arange(300000, dtype="f4"), "b": numpy.ones(7, "f4")}, file)
            local = run("hash", file, env={})[1].split()[0]
            test_keys(s3, env, file, local)
            test_refusals(s3, env, file)
            test_profile(s3, env, key, folder)
            test_folder(s3, env, folder)
            test_changed(s3, env, folder)
            test_sums(s3, env, folder, file)
            test_writing(s3, env, folder, file, local)
            test_plan(s3, env, folder)
        finally:
            server.stdin.close()
            if gateway:
                server.terminate()
            server.wait()
    sys.exit(1 if bad else 0)


main()
