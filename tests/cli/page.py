#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page of `stat --html` in a browser. page.py TENFOLD [SCREENSHOTS]

Filters, sorts and scrolls; checks that there are no errors in the console, that nothing is wider than the
window, and the contrast of all text in both colour modes. Needs Chromium, its driver and selenium; without
them the exit code is 77.
"""
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

try:
    from selenium import webdriver
    from selenium.webdriver.common.by import By
except ImportError:
    webdriver = None

DRIVER = shutil.which("chromedriver")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

# For every element with text of its own: its contrast with the nearest background.
CONTRAST = """
function parse(c){return c.match(/[\\d.]+/g).map(Number);}
function light(c){return c.slice(0,3).map(function(v){v/=255;return v<=0.03928?v/12.92:Math.pow((v+0.055)/1.055,2.4);})
  .reduce(function(s,v,i){return s+v*[0.2126,0.7152,0.0722][i];},0);}
function behind(e){for(;e;e=e.parentElement){var c=parse(getComputedStyle(e).backgroundColor);if(c.length<4||c[3]>0)return c;}return [255,255,255];}
var worst=[99,''];
document.querySelectorAll('body *').forEach(function(e){
  var own=Array.from(e.childNodes).some(function(n){return n.nodeType===3&&n.textContent.trim();});
  if(!own||['SCRIPT','NOSCRIPT','OPTION'].includes(e.tagName)||e.getClientRects().length===0)return;
  if(parseFloat(getComputedStyle(e).fontSize)===0)return;
  var a=light(parse(getComputedStyle(e).color)),b=light(behind(e));
  var r=(Math.max(a,b)+0.05)/(Math.min(a,b)+0.05);
  if(r<worst[0])worst=[r,e.className+' '+e.textContent.slice(0,30)];
});
return worst;
"""


def safetensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt", "author": "<b>me</b>"}}, []
    at = 0
    for name, values in tensors:
        raw = struct.pack("<%df" % len(values), *values)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        data.append(raw)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def model(layers):
    rnd = random.Random(1)

    def some(n):
        return [rnd.gauss(0, 0.02) for _ in range(n)]
    out = [("embed.weight", some(600))]
    for i in range(layers):
        for part, n in (("attn.q_proj", 64), ("attn.k_proj", 64), ("mlp.up_proj", 128), ("norm", 8)):
            out.append((f"model.layers.{i}.{part}.weight", some(n)))
    out.append(("bad.weight", [float("nan"), float("inf"), 1e-40, 1.0]))
    return out


def browser(dark):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    made.execute_cdp_cmd("Emulation.setEmulatedMedia",
                         {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
    return made


def names(page):
    return [e.text for e in page.find_elements(By.CSS_SELECTOR, "#rows td.name")]


def wait_for(want):
    """Waits as long as it takes; the limit of the test ends it for a page that never shows this."""
    while not want():
        time.sleep(0.05)


def check(page, path, tensors, shots):
    page.set_window_size(1400, 1000)
    page.get(path.as_uri())
    said = page.find_element(By.ID, "said")
    wait_for(lambda: said.text.startswith(f"{tensors:,} of {tensors:,} tensors"))
    box = page.find_element(By.ID, "filter")
    box.send_keys("layers.7. q_proj")
    wait_for(lambda: said.text.startswith("1 of"))
    if names(page) != ["model.layers.7.attn.q_proj.weight"]:
        yield f"{path.name}: the filter gives {names(page)[:3]}"
    box.clear()
    box.send_keys(" ")
    wait_for(lambda: said.text.startswith(f"{tensors:,} of"))
    page.find_element(By.CSS_SELECTOR, "button[data-key='4']").click()
    if names(page)[0] != "embed.weight":
        yield f"{path.name}: sorted by size, {names(page)[0]} is first"
    page.find_element(By.CSS_SELECTOR, "button[data-key='0']").click()
    if names(page)[:2] != ["bad.weight", "embed.weight"] or names(page)[6] != "model.layers.1.attn.k_proj.weight":
        yield f"{path.name}: sorted by name: {names(page)[:7]}"
    began = time.time()
    page.find_element(By.CSS_SELECTOR, "button[data-key='7']").click()
    took = time.time() - began
    print(f"{path.name}: sorting {tensors} tensors took {took:.1f} s")
    red = page.find_elements(By.CSS_SELECTOR, "#rows .bad")
    if any("subnormal" in e.text for e in red):
        yield "subnormals are red"
    for width in (420, 900, 1400):
        page.set_window_size(width, 1000)
        inner = page.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
        if inner[0] > inner[1]:
            yield f"{path.name}: {inner[0]} pixels wide in a window of {inner[1]}"
        if shots:
            page.save_screenshot(str(shots / f"{path.stem}-{width}.png"))
    errors = [e["message"] for e in page.get_log("browser") if e["level"] == "SEVERE"]
    if errors:
        yield f"{path.name}: the console says {errors[:2]}"


def check_contrast(page, path, mode):
    page.set_window_size(1400, 1000)
    page.get(path.as_uri())
    ratio, where = page.execute_script(CONTRAST)
    if ratio < 4.5:
        yield f"{mode}: a contrast of {ratio:.2f} ({where})"


def main():
    if not webdriver or not DRIVER or not BROWSER:
        print("page: no browser to test with")
        sys.exit(77)
    tenfold = str(pathlib.Path(sys.argv[1]).resolve())
    shots = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
    wrong = []
    with tempfile.TemporaryDirectory() as made:
        where = pathlib.Path(made)
        pages = []
        for layers in (32, 250, 5000):
            tensors = model(layers)
            safetensors(where / f"m{layers}.safetensors", tensors)
            pages.append((where / f"m{layers}.html", len(tensors)))
            subprocess.run([tenfold, "stat", f"m{layers}.safetensors", "--html", pages[-1][0].name, "--heat",
                            "embed.weight"], cwd=where, check=True)
        light, dark = browser(False), browser(True)
        try:
            for path, tensors in pages:
                wrong += check(light, path, tensors, shots)
            wrong += check_contrast(light, pages[0][0], "light")
            wrong += check_contrast(dark, pages[0][0], "dark")
        finally:
            light.quit()
            dark.quit()
    print("".join(w + "\n" for w in wrong), end="")
    print(f"page: {len(wrong)} complaints")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
