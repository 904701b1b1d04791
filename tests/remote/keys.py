#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Credentials: they are sent only to the right host and never printed; the sources of keys and tokens;
redirects that lead inward; objects that are written.

    keys.py COMMAND [NAME...]
"""
import json
import os
import random
import sys

from world import at_once, check, floats, main, make_safetensors, run

with open(sys.argv[1], "rb") as command:
    SLOW = b"__asan_init" in command.read()  # megabytes take long: a third of the uploads is made


def test_secrets(w):
    """A token is sent only to the host of the URL, and is never printed."""
    host = "127.0.0.1:%d" % w.ports[0]
    path = os.path.join(w.folder, "headers")
    with open(path, "w") as f:
        f.write("%s: Authorization: Bearer t0ken\n" % host)
    env = {"TENFOLD_HTTP_HEADER_FILE": path}
    code, out, err = run("info", w.url("auth/m.safetensors"))
    check(code == 3 and "requires credentials (401)" in err, "without a token: " + err)
    w.log()
    code, out, err = run("--trace", "info", w.url("auth/m.safetensors?sig=SECRET"), env=env)
    check(code == 0, "with a token: " + err)
    check("t0ken" not in err + out.decode() and "SECRET" not in err + out.decode(), "printed: " + err)
    check([h["path"] for h in w.log()] == ["/auth/m.safetensors?sig=SECRET"], "the query is not sent")
    code, out, err = run("verify", w.url("auth/m.safetensors?sig=SECRET"), env=env)
    check(code == 0 and "SECRET" not in err + out.decode(), "verify: " + err)
    check({h["path"] for h in w.log()} == {"/auth/m.safetensors?sig=SECRET"}, "verify: the query is not sent")
    code, out, err = run("--trace", "hash", w.url("other/m.safetensors"), env=env)
    seen = w.log()
    check(code == 0, "another host: " + err)
    check("SECRET" not in err, "a signature was printed: " + err)
    for h in seen:
        check(("authorization" in h["headers"]) == (h["port"] == w.ports[0]),
              "Authorization at port %d" % h["port"])
    check(any(h["port"] == w.ports[1] for h in seen), "no redirect to the other host")
    code, out, err = run("info", "http://user:pass@%s/ok/m.safetensors" % host)
    check(code == 2 and "would be shown" in err, "a password in a URL: " + err)
    os.unlink(path)


def test_plans(w):
    """Parts and finish print a signed URL like the plain command: without its signature."""
    plan = os.path.join(w.folder, "plan.json")

    def planned(url, job):
        code, out, err = run("plan", url, "--for", job, "--parts", "2", "--json")
        check(code == 0 and "SECRET" not in err and "keep the plan secret" in err, "plan: " + err)
        with open(plan, "wb") as f:
            f.write(out)

    url = w.url("ok/m.safetensors?sig=SECRET")
    for job in ("hash", "verify"):
        planned(url, job)
        code, out, err = run("run", plan, "-j", "1")
        check(code == 0 and "SECRET" not in out.decode() + err, "run: %s %s" % (out, err))
        check(job != "hash" or out == run(job, url)[1], "run: not what hash prints: %s" % out)
        code, out, err = run("run", "--json", plan)
        check(code == 0 and b"SECRET" not in out and b"/ok/m.safetensors" in out, "run --json: %s" % out)
    planned(w.url("changed/m.safetensors?sig=SECRET"), "hash")
    code, out, err = run("hash", "--plan", plan, "--part", "0/2")
    check(code == 3 and "it has another ETag" in err and "SECRET" not in err, "another object: " + err)
    planned(url, "hash")
    os.rename(w.folder + "/m.safetensors", w.folder + "/away")
    code, out, err = run("hash", "--plan", plan, "--part", "0/2")
    os.rename(w.folder + "/away", w.folder + "/m.safetensors")
    check(code == 3 and "not the one that was planned" in err and "SECRET" not in err, "gone: " + err)
    for url in (w.url("status-403/x?sig=SECRET"), "http://me:SECRET@127.0.0.1:%d/ok/m.safetensors" % w.ports[0]):
        code, out, err = run("plan", url, "--for", "hash", "--parts", "2")
        check(code in (2, 3) and "SECRET" not in err and "127.0.0.1" in err, "a plan that is refused: " + err)
    code, out, err = run("plan", w.url("ok/m.safetensors"), "--for", "hash", "--parts", "2", "--json")
    check(code == 0 and err == "", "a warning for nothing: " + err)


class ObjectOfAPlan:
    """Parts of a plan are parts of an upload: the object appears when finish completes it, or never."""

    def __init__(self, w):
        self.w, self.plan = w, os.path.join(w.folder, "to-s3.json")
        self.env = {"AWS_ENDPOINT_URL": w.url("")[:-1], "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
        self.big, self.small = os.path.join(w.folder, "values.safetensors"), os.path.join(w.folder, "long.safetensors")
        make_safetensors(self.big, {"w": ([9 << 20], random.randbytes(4 << 20) * 9), "b": ([9], floats(9)),
                                    "v": ([3 << 20], random.randbytes(12 << 20))})

    def run(self, *words):
        return run(*words, env=self.env)

    def state(self):
        found = json.loads(self.w.ask("kept/?list"))
        return [p.split("/", 2)[2] for p in found["objects"]], len(found["uploads"])

    def planned(self, out, parts, *more, source=None):
        code, text, err = self.run("plan", source or self.big, "--for", "convert", "--out", out, "--parts", str(parts),
                                   "--json", *more)
        if code == 0:
            with open(self.plan, "wb") as f:
                f.write(text)
        return code, err

    def part(self, i, n, *more):
        return self.run("convert", "--plan", self.plan, "--part", "%d/%d" % (i, n), *more)

    def same(self, url, source):
        with open(source, "rb") as f:
            data = f.read()
        return self.w.ask(url.replace("s3://", "")) == data

    def finished(self, n, bucket, plain):
        out = "s3://%s/n%d.safetensors" % (bucket, n)
        check(self.planned(out, n) == (0, ""), "plan")
        at_once(n, [lambda i=i: check(self.part(i, n)[0] == 0, "part %d of %d" % (i, n)) for i in range(n)])
        state = self.state()
        check(state[1] == 1 and "n%d.safetensors" % n not in state[0], "%d: before finish: %s" % (n, state))
        self.w.log()
        check(self.part(0, n)[0] == 0 and self.w.log() == [], "a part that is done is done again")
        code, text, err = self.run("finish", "--json", self.plan)
        check(code == 0, "finish of %d: %s" % (n, err))
        told = json.loads(text or "{}")
        check(self.same(out, plain) and told.get("size") == os.path.getsize(plain), "%d parts: another object" % n)
        check(told.get("hash") == json.loads(run("hash", "--json", plain)[1])["hash"], "%d parts: another hash" % n)
        left = [f for f in os.listdir(self.w.folder) if "tenfold-" in f]
        check(self.state()[1] == 0 and not left, "%d: something is left" % n)

    def late(self, n):
        code, text, err = self.part(0, n)
        check(code == 3 and "already exists" in err and self.state()[1] == 0, "a late part: %d %s" % (code, err))
        self.run("finish", "--abort", self.plan)

    def given_up(self):
        planned = self.planned("s3://kept/given-up.safetensors", 2)[0]
        check(planned == 0 and self.part(1, 2)[0] == 0 and self.state()[1] == 1, "begun")
        code, text, err = self.run("finish", self.plan)
        check(code == 3 and "1 of 2 parts are not done: 0" in err, "incomplete: %d %s" % (code, err))
        check(self.run("finish", "--abort", self.plan)[0] == 0 and self.state()[1] == 0, "--abort: %s" % (self.state(),))

    def of_one_part(self):
        url = "s3://kept/other.safetensors"
        check(self.planned(url, 1, source=self.small)[0] == 0 and self.run("run", self.plan)[0] == 0, "a small one")
        check(self.same(url, self.small) or self.run("hash", url)[0] == 0, "a small one")

    def raced(self, source, want):
        """Another program makes the object first: with other bytes (`want` 3), or with the same ones."""
        key, first = "s3://kept/raced%d.safetensors" % want, self.plan + ".first"
        check(self.planned(key, 2)[0] == 0 and self.part(0, 2)[0] == 0 and self.part(1, 2)[0] == 0, "parts")
        os.rename(self.plan, first)
        for receipts in [f for f in os.listdir(self.w.folder) if f.startswith("to-s3.json.tenfold-")]:
            os.rename(self.w.folder + "/" + receipts, self.w.folder + "/" + receipts.replace("to-s3.json", "to-s3.json.first"))
        planned = self.planned(key, 1 if want else 2, "--force", source=source)[0]
        check(planned == 0 and self.run("run", self.plan)[0] == 0, "--force")
        code, text, err = self.run("finish", first)
        check(code == want and (not want or "already exists" in err), "raced: %d %s" % (code, err))
        check(self.run("finish", "--abort", first)[0] == 0 and self.state()[1] == 0, "--abort: %s" % (self.state(),))

    def whole(self):
        check(self.planned("s3://kept/out.zt", 3)[0] == 0, "a whole one")
        code, text, err = self.run("run", self.plan)
        check(code == 0 and self.run("verify", "s3://kept/out.zt")[0] == 0, "a whole one: %s" % err)

    def refused(self):
        code, err = self.planned("s3://kept/many.safetensors", 11)
        check(code == 2 and "use fewer parts" in err, "small parts: %d %s" % (code, err))
        for out, more in (("gs://b/x.safetensors", ()), ("s3://kept/d", ("--max-size", "9M", "--to", "safetensors"))):
            code, err = self.planned(out, 2, *more)
            check(code == 4 and "a single s3 object" in err, "%s: %d %s" % (out, code, err))
        check(self.state()[1] == 0, "an upload is left: %s" % (self.state(),))


def test_object_of_a_plan(w):
    of, plain = ObjectOfAPlan(w), w.folder + "/plain.safetensors"
    check(run("convert", of.big, plain)[0] == 0, "plain")
    for n, bucket in ((5, "kept-slow"), (1, "kept"), (4, "kept-lost"))[:1 if SLOW else 3]:
        of.finished(n, bucket, plain)
    of.late(n)
    of.given_up()
    of.of_one_part()
    of.raced(of.small, 3)
    of.raced(of.big, 0)
    of.whole()
    of.refused()


def test_netrc(w):
    """A password of .netrc is sent on request, and only to the host of the URL."""
    path = os.path.join(w.folder, "netrc")
    with open(path, "w") as f:
        f.write("machine other.example login you password no\nmachine 127.0.0.1 login me password s3cret\n")
    os.chmod(path, 0o600)
    url = w.url("basic/m.safetensors")
    code, out, err = run("info", url, env={"NETRC": path})
    check(code == 3 and "requires credentials (401)" in err and "-o netrc=yes" in err, "unasked: " + err)
    code, out, err = run("--trace", "hash", "-o", "netrc=yes", url, env={"NETRC": path})
    check(code == 0 and "s3cret" not in err and "Basic" not in err, "asked for: " + err)
    w.log()
    code, out, err = run("hash", "-o", "netrc=yes", w.url("other/m.safetensors"), env={"NETRC": path})
    seen = w.log()
    check(code == 0 and all(("authorization" in h["headers"]) == (h["port"] == w.ports[0]) for h in seen),
          "at another host: %s" % seen)
    code, out, err = run("info", "-o", "netrc=yes", url, env={"NETRC": path + ".none"})
    check(code == 3 and ".netrc has no password" in err, "no file: " + err)
    code, out, err = run("fetch", "-o", "netrc=yes", url, w.folder + "/netrc-out", env={"NETRC": path})
    check(code == 0, "fetch: " + err)
    os.unlink(path)


def test_clouds(w):
    """Requests to gs and az, and their credentials."""
    host = "127.0.0.1:%d" % w.ports[0]
    local = run("hash", os.path.join(w.folder, "m.safetensors"))[1].split()[0]
    env = {"STORAGE_EMULATOR_HOST": host, "GOOGLE_OAUTH_ACCESS_TOKEN": "g0ogle"}
    w.log()
    code, out, err = run("--trace", "hash", "gs://generation/m.safetensors", env=env)
    seen = w.log()
    check(code == 0 and out.split()[:1] == [local], "gs: " + err)
    check("g0ogle" not in err, "gs: a token was printed")
    check(all(h["headers"].get("authorization") == "Bearer g0ogle" for h in seen), "gs: without its token")
    check(all(("generation=77" in h["path"]) == (h is not seen[0]) for h in seen), "gs: %s" % seen)
    env = {"AZURE_STORAGE_ENDPOINT": "http://" + host, "AZURE_STORAGE_SAS_TOKEN": "?sv=1&sig=SECRET"}
    code, out, err = run("--trace", "hash", "az://ok/m.safetensors", env=env)
    seen = w.log()
    check(code == 0 and out.split()[:1] == [local], "az: " + err)
    check("SECRET" not in err, "az: a signature was printed")
    check(all(h["path"].endswith("?sv=1&sig=SECRET") and h["headers"]["x-ms-version"] == "2021-12-02"
              for h in seen), "az: %s" % seen)
    code, out, err = run("info", "az://ok/m.safetensors")
    check(code == 2 and "AZURE_STORAGE_ACCOUNT" in err, "az without an account: " + err)


def test_roles(w):
    """If there are no keys, the services of the machine are asked for them. Keys are never printed, and these requests
    use no proxy."""
    base = w.url("")[:-1]
    token = os.path.join(w.folder, "token")
    with open(token, "w") as f:
        f.write("agent t0ken\n")
    web = os.path.join(w.folder, "web")
    with open(web, "w") as f:
        f.write("web/t0ken=")
    common = {"AWS_ENDPOINT_URL": base, "http_proxy": "http://127.0.0.1:1", "no_proxy": ""}
    cases = [
        ("agent", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": base + "/agent/x", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "agent t0ken"}),
        ("agent", {"AWS_CONTAINER_CREDENTIALS_FULL_URI": base + "/agent/x", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token}),
        ("imds", {"AWS_EC2_METADATA_SERVICE_ENDPOINT": base + "/imds/", "AWS_EC2_METADATA_DISABLED": "false"}),
        ("sts", {"AWS_WEB_IDENTITY_TOKEN_FILE": web, "AWS_ROLE_ARN": "arn:r", "AWS_ENDPOINT_URL_STS": base + "/sts/",
                 "http_proxy": ""}),
    ]
    for word, env in cases:
        env = {**common, **env}
        w.log()
        proxied = env["http_proxy"]
        code, out, err = run("--trace", "info", "s3://ok/m.safetensors", env=env)
        seen = w.log()
        if proxied:  # the object itself goes by the proxy, which is not there: the keys did not
            check(code == 3 and any("/%s" % word in h["path"] for h in seen), "%s by a proxy: %s" % (word, err))
            code, out, err = run("--trace", "info", "s3://ok/m.safetensors", env={**env, "http_proxy": ""})
            seen = w.log()
        asked = [h for h in seen if h["path"].startswith("/ok/")]
        check(code == 0 and asked, "%s: %s" % (word, err))
        check(all("Credential=KEY%s/" % word in h["headers"].get("authorization", "") for h in asked), "%s: not signed" % word)
        check(all(h["headers"].get("x-amz-security-token") == "TOKEN" + word for h in asked), "%s: no session" % word)
        for secret in ("SECRET" + word, "TOKEN" + word, "t0ken", "IMDSTOKEN"):
            check(secret not in err + out.decode(), "%s: %s was printed" % (word, secret))
    for env, sentence in [
            ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.org/x"}, "neither https nor local"),
            ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": base + "/agent/x"}, "the service returned no credentials"),
            ({"AWS_WEB_IDENTITY_TOKEN_FILE": web, "AWS_ROLE_ARN": "other", "AWS_ENDPOINT_URL_STS": base + "/sts/"},
             "STS returned no keys"),
            ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere", "AWS_ROLE_ARN": "other"}, "cannot be read")]:
        code, out, err = run("info", "s3://ok/m.safetensors", env={"AWS_ENDPOINT_URL": base, **env})
        check(code == 3 and sentence in err, "%s: %d %s" % (sentence, code, err))
    host = base.removeprefix("http://")
    for url, env, bearer in [
            ("gs://ok/m.safetensors", {"STORAGE_EMULATOR_HOST": host, "GCE_METADATA_HOST": host, "NO_GCE_CHECK": ""}, "GOOGLETOKEN"),
            ("az://ok/m.safetensors", {"AZURE_STORAGE_ENDPOINT": base, "AZURE_POD_IDENTITY_AUTHORITY_HOST": base}, "AZURETOKEN")]:
        w.log()
        code, out, err = run("--trace", "hash", url, env=env)
        asked = [h for h in w.log() if h["path"].startswith("/ok/")]
        check(code == 0 and len(asked) > 1, "%s: %s" % (url, err))
        check(all(h["headers"].get("authorization") == "Bearer " + bearer for h in asked), "%s: no token" % url)
        check(bearer not in err, "%s: a token was printed" % url)


def test_profiles(w):
    """Keys, region and tokens from files."""
    base, home = w.url("")[:-1], os.path.join(w.folder, "home")
    os.makedirs(home + "/.aws")
    os.makedirs(home + "/.cache/huggingface")
    with open(home + "/.aws/credentials", "w") as f:
        f.write("[default]\naws_access_key_id = FIRST\naws_secret_access_key=s3cr3t\n# a word\n[work]\n"
                "aws_access_key_id=SECOND\naws_secret_access_key = s3cr3t\naws_session_token = T0K3N\n[empty]\n")
    with open(home + "/.aws/config", "w") as f:
        f.write("[profile work]\nregion = eu-north-1\n[profile sso]\nsso_session = x\n[profile run]\ncredential_process = y\n")
    with open(home + "/.cache/huggingface/token", "w") as f:
        f.write("hf_of_file\n")
    env = {"AWS_ENDPOINT_URL": base, "HOME": home, "XDG_CACHE_HOME": ""}
    for profile, want in [("", "Credential=FIRST/"), ("work", "Credential=SECOND/")]:
        w.log()
        code, out, err = run("--trace", "info", "s3://ok/m.safetensors", env={**env, "AWS_PROFILE": profile})
        seen = w.log()
        check(code == 0 and all(want in h["headers"].get("authorization", "") for h in seen), "profile %s: %s" % (profile, err))
        check(all(("/eu-north-1/" in h["headers"]["authorization"]) == (profile == "work") for h in seen), profile + ": another region")
        check(all((h["headers"].get("x-amz-security-token") == "T0K3N") == (profile == "work") for h in seen), profile + ": its token")
        check("s3cr3t" not in err and "T0K3N" not in err, "a secret was printed")
    for profile, word in [("sso", "sso_session"), ("run", "credential_process")]:
        code, out, err = run("info", "s3://ok/m.safetensors", env={**env, "AWS_PROFILE": profile})
        check(code == 4 and word in err and "export-credentials" in err, "%s: %d %s" % (profile, code, err))
    for more, signed in [({"AWS_PROFILE": "empty"}, False), ({"AWS_NO_SIGN_REQUEST": "yes"}, False),
                         ({"AWS_SHARED_CREDENTIALS_FILE": "/nowhere"}, False), ({"AWS_REGION": "x"}, True)]:
        w.log()
        code, out, err = run("info", "s3://ok/m.safetensors", env={**env, **more})
        check(code == 0 and all(("authorization" in h["headers"]) == signed for h in w.log()), "%s: %s" % (more, err))
    with open(home + "/other", "w") as f:
        f.write("hf_of_other")
    hub = {"HF_ENDPOINT": w.url("hub"), "HOME": home, "XDG_CACHE_HOME": ""}
    for more, want in [({}, "hf_of_file"), ({"HF_TOKEN_PATH": home + "/other"}, "hf_of_other"),
                       ({"XDG_CACHE_HOME": home + "/.cache"}, "hf_of_file"), ({"HF_HOME": "/nowhere"}, None)]:
        w.log()
        code, out, err = run("--trace", "info", "hf://tree/any/m.safetensors", env={**hub, **more})
        seen = w.log()
        check(code == 0 and seen and all(h["headers"].get("authorization") == (want and "Bearer " + want) for h in seen),
              "%s: %s" % (more, err))
        check("hf_of" not in err, "a token was printed")


def test_inward(w):
    """A public host cannot redirect to a private address. The proxy makes any name that of a public host."""
    env = {"http_proxy": w.url("")[:-1], "no_proxy": "127.0.0.1"}
    for address in ("169.254.169.254", "127.0.0.1", "10.1.2.3", "[::1]", "[::ffff:192.168.0.1]", "100.64.0.1"):
        w.log()
        code, out, err = run("info", "http://public.example/inward-%s/m.safetensors" % address, env=env)
        check(code == 3 and "from a public host to a private address" in err, "%s: %d %s" % (address, code, err))
        check(len(w.log()) == 1, "%s was asked" % address)
    code, out, err = run("info", "http://public.example/inward-127.0.0.1:%d/m.safetensors" % w.ports[1],
                         "-o", "private=yes", env=env)
    check(code == 0, "private=yes: " + err)


def test_core(w):
    """A name in a listing or an index cannot lead to another place, and the output of a command that fails contains
    no secret."""
    secrets = {"AWS_ACCESS_KEY_ID": "AKIAVISIBLE", "AWS_SECRET_ACCESS_KEY": "S3CR3T", "AWS_SESSION_TOKEN": "T0K3N",
               "HF_TOKEN": "hf_S3CR3T", "AZURE_STORAGE_SAS_TOKEN": "sv=1&sig=S3CR3T", "GOOGLE_OAUTH_ACCESS_TOKEN": "S3CR3T",
               "AWS_ENDPOINT_URL": w.url("")[:-1], "HF_ENDPOINT": w.url("status-500/x"),
               "AZURE_STORAGE_ENDPOINT": w.url("")[:-1], "STORAGE_EMULATOR_HOST": "127.0.0.1:%d" % w.ports[0]}
    for url in ("s3://status-403/x.safetensors", "s3://status-418/x", "hf://a/b/c.safetensors", "az://status-403/x",
                "gs://status-401/x", "s3://other/m.safetensors", "az://other/m.safetensors", "s3://loop/x",
                w.url("status-403/x?sig=S3CR3T"), w.url("loop/x?sig=S3CR3T"), w.url("nowhere/x?sig=S3CR3T")):
        for command in (["--trace", "info", url], ["--trace", "fetch", url, os.path.join(w.folder, "f")]):
            w.log()
            code, out, err = run(*command, env={**secrets, "TENFOLD_HTTP_HEADER_FILE": ""})
            text = out.decode() + err
            check("S3CR3T" not in text and "T0K3N" not in text and "Signature=" not in text, "%s: %s" % (url, text))
            for h in w.log():
                if h["port"] == w.ports[1]:
                    check("authorization" not in h["headers"] and "x-amz-security-token" not in h["headers"] and
                          "S3CR3T" not in h["path"], "%s: a secret at another host" % url)


def test_region(w):
    """If a bucket is in another region, the request is repeated there, once. If the clock is wrong, it is corrected, once."""
    env = {"AWS_ENDPOINT_URL": w.url("")[:-1], "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    for how, want, most in [("region-400", 0, 2), ("region-301", 0, 2), ("clock", 0, 2), ("region", 3, 1)]:
        w.log()
        code, out, err = run("info", "s3://%s/m.safetensors" % how, env=env)
        check(code == want and len(w.log()) == most, "%s: %d %s" % (how, code, err))
    w.log()
    code, out, err = run("hash", "s3://region-400/m.safetensors", env=env)
    check(code == 0 and len(w.log()) == 4, "the region is forgotten: " + err)


def test_upload(w):
    """Parts appear as one object or not at all: a failed upload is aborted, and nothing is replaced without --force."""
    env = {"AWS_ENDPOINT_URL": w.url("")[:-1], "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s3cr3t"}
    big, small = os.path.join(w.folder, "big.safetensors"), os.path.join(w.folder, "m.safetensors")
    uploads = [
            ("bucket-good", small, 0, None, "GET PUT"),
            ("bucket-good", big, 0, None, "GET POST" + 10 * " PUT" + " POST"),  # 72 MiB in parts of 8, and the header
            ("bucket-there", small, 3, "already exists", "GET"),
            ("bucket-raced", small, 3, "already exists", "GET PUT HEAD"),
            ("bucket-raced", big, 3, "already exists", "GET POST" + 10 * " PUT" + " POST DELETE"),  # its ETags are not MD5
            ("bucket-reset", big, 0, None, "GET POST" + 11 * " PUT" + " POST"),  # the third is sent again
            ("bucket-lost", small, 0, None, "GET PUT PUT HEAD"),  # the object is the one that was sent
            ("bucket-lost", big, 0, None, "GET POST" + 10 * " PUT" + " POST POST HEAD DELETE"),
            ("bucket-foreign", small, 3, "already exists", "GET PUT PUT HEAD"),
            ("bucket-foreign", big, 3, "already exists", "GET POST" + 10 * " PUT" + " POST POST HEAD DELETE"),
            ("bucket-badpart", big, 3, "denies access (403)", "GET POST PUT PUT DELETE"),
            ("bucket-late", big, 3, "did not finish the upload: InternalError", "GET POST" + 10 * " PUT" + " POST DELETE"),
            ("bucket-noid", big, 3, "did not begin an upload", "GET POST")]
    for how, source, want, sentence, methods in uploads[1::3] if SLOW else uploads:
        w.log()
        code, out, err = run("--trace", "convert", source, "s3://%s/out.safetensors" % how, env=env)
        seen = w.log()
        again = how in ("bucket-reset", "bucket-lost", "bucket-foreign")  # by libcurl: the connection was closed
        for method in ("PUT", "POST", "HEAD", "DELETE"):
            told, sent = err.count(" %s " % method), methods.split().count(method)
            check(told == sent or (again and told == sent - 1), "%s: --trace tells %d %s of %d" % (how, told, method, sent))
        check(code == want and (not sentence or sentence in err), "%s: %d %s" % (how, code, err))
        check(" ".join(h["method"] for h in seen) == methods, "%s: %s" % (how, [h["method"] for h in seen]))
        last = [h for h in seen if h["method"] in ("PUT", "POST")][-1:]
        if how in ("bucket-good", "bucket-raced", "bucket-late"):
            check(last[0]["headers"].get("if-none-match") == "*", "%s: no If-None-Match" % how)
        check("s3cr3t" not in err, "%s: a secret was printed" % how)
    w.log()
    code, out, err = run("convert", "--force", small, "s3://bucket-there/out.safetensors", env=env)
    seen = w.log()
    check(code == 0 and [h["method"] for h in seen] == ["PUT"] and "if-none-match" not in seen[0]["headers"],
          "--force: %s" % err)


main(globals())
