/* SPDX-License-Identifier: MIT */
/* Official inputs (byte i is i % 251) hashed by the reference implementation, and the parameter ids
 * of gpt.rs. */
#include "base/blake3.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    size_t n;
    const char *hex;
} official[] = {
    { 0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262" },
    { 1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213" },
    { 2, "7b7015bb92cf0b318037702a6cdd81dee41224f734684c2c122cd6359cb1ee63" },
    { 3, "e1be4d7a8ab5560aa4199eea339849ba8e293d55ca0a81006726d184519e647f" },
    { 4, "f30f5ab28fe047904037f77b6da4fea1e27241c5d132638d8bedce9d40494f32" },
    { 5, "b40b44dfd97e7a84a996a91af8b85188c66c126940ba7aad2e7ae6b385402aa2" },
    { 6, "06c4e8ffb6872fad96f9aaca5eee1553eb62aed0ad7198cef42e87f6a616c844" },
    { 7, "3f8770f387faad08faa9d8414e9f449ac68e6ff0417f673f602a646a891419fe" },
    { 8, "2351207d04fc16ade43ccab08600939c7c1fa70a5c0aaca76063d04c3228eaeb" },
    { 63, "e9bc37a594daad83be9470df7f7b3798297c3d834ce80ba85d6e207627b7db7b" },
    { 64, "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98" },
    { 65, "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee" },
    { 127, "d81293fda863f008c09e92fc382a81f5a0b4a1251cba1634016a0f86a6bd640d" },
    { 128, "f17e570564b26578c33bb7f44643f539624b05df1a76c81f30acd548c44b45ef" },
    { 129, "683aaae9f3c5ba37eaaf072aed0f9e30bac0865137bae68b1fde4ca2aebdcb12" },
    { 1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11" },
    { 1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7" },
    { 1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444" },
    { 2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a" },
    { 2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030" },
    { 3072, "b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2" },
    { 3073, "7124b49501012f81cc7f11ca069ec9226cecb8a2c850cfe644e327d22d3e1cd3" },
    { 4096, "015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969" },
    { 4097, "9b4052b38f1c5fc8b1f9ff7ac7b27cd242487b3d890d15c96a1c25b8aa0fb995" },
    { 5120, "9cadc15fed8b5d854562b26a9536d9707cadeda9b143978f319ab34230535833" },
    { 5121, "628bd2cb2004694adaab7bbd778a25df25c47b9d4155a55f8fbd79f2fe154cff" },
    { 6144, "3e2e5b74e048f3add6d21faab3f83aa44d3b2278afb83b80b3c35164ebeca205" },
    { 6145, "f1323a8631446cc50536a9f705ee5cb619424d46887f3c376c695b70e0f0507f" },
    { 7168, "61da957ec2499a95d6b8023e2b0e604ec7f6b50e80a9678b89d2628e99ada77a" },
    { 7169, "a003fc7a51754a9b3c7fae0367ab3d782dccf28855a03d435f8cfe74605e7817" },
    { 8192, "aae792484c8efe4f19e2ca7d371d8c467ffb10748d8a5a1ae579948f718a2a63" },
    { 8193, "bab6c09cb8ce8cf459261398d2e7aef35700bf488116ceb94a36d0f5f1b7bc3b" },
    { 16384, "f875d6646de28985646f34ee13be9a576fd515f76b5b0a26bb324735041ddde4" },
    { 31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47" },
    { 102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085" },
    { 1048577, "2f053cd7472cf0cd2f9adaf45c1180255b91b9a865404a63671a0ee5f792ed33" },
};

/* Names without a text are that many times 'x'. The keys are those of namespace 1. */
static const struct {
    const char *name;
    size_t n;
    const char *id, *key;
} params[] = {
    { "", 0, "af1349b9f5f9a1a6a0404dea36dcc949", "b1f158118ef5c5d68f667a9692f5636c" },
    { "a", 1, "17762fddd969a453925d65717ac3eea2", "7e83162cdf609441fbe4d447663a42ad" },
    { "tok_embeddings.weight", 21, "7e7feacfe1ddb49f69ba6d05e7ec9ee6",
      "5eaeed334077622b6b8542cf19a37233" },
    { "pos_embeddings", 14, "09c8373ac0584896e1997566f5e9656c",
      "c6f4566e0d5d233e14bedd5811e67a3a" },
    { "lm_head", 7, "585d23eebd91ff137aef590d2ec762a9", "d0ac31c4ea65bfe010afa078ba4d87bc" },
    { "final_ln.gamma", 14, "509eeb6a25813629c92e9d286e53c711",
      "8d1b0fbf70ea5cf92ac948a42129f451" },
    { "final_ln.beta", 13, "79ec67343d0c7f14cc9df61fc7ef27e6", "8fd6ff6efae547d12162cfbe2160e42a" },
    { "blocks.0.attention.w_qkv", 24, "e72a6ef8ed8165a87745cd77f2ec344c",
      "8bcfd24f3fcd2d1f53c356502317a233" },
    { "blocks.0.attention.b_qkv", 24, "efe957479b14cd1b90b348ebc255dee1",
      "1d03d6252dce931d08d453c2d563170c" },
    { "blocks.11.feed_forward.w_out", 28, "04989f5f9bc8fcf42be97aeb0ccae107",
      "9aa57d7654cec3860ffe13515de14810" },
    { "conv1.weight", 12, "f1158ec740975d6fe5ccc20b94293135", "047f8dad353d34927f302858ea5a5fb0" },
    { "layer4.2.conv2.bias", 19, "5d50ce5ea26c9f025f0a4a0fc099fa03",
      "96474251ea1dc7800bdd9e793400b88f" },
    { NULL, 64, "84421676fe0d5a2229f1e3bbf7b84cf5", "fb22213e423b71f3b24e6e5eaeda7c42" },
    { NULL, 65, "a32b4a703f5d61b2df5bfbf5a5e7af5f", "00d85cf45cafb36000201d668ad15d8b" },
    { NULL, 1024, "71c7a224be567fb9acd2c32f87359835", "5c4640b77fa3a4a78403fcfb3f7e7a9e" },
    { NULL, 1025, "71b7ce25ca2144dcf4d7ed561d8a526b", "6cbe41c929ce236eb66bc660765550a6" },
    { NULL, 2049, "7c63a0a25704495bb522664a06967e8c", "475201fc2c981ef486e5d2207ba51021" },
};

static const char *hex_of(const uint8_t *digest, size_t n)
{
    static char hex[65];
    for (size_t i = 0; i < n; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return hex;
}

static void official_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof official / sizeof official[0]; i++) {
        size_t n = official[i].n;
        uint8_t digest[32], *input = malloc(n ? n : 1);
        assert_non_null(input);
        for (size_t k = 0; k < n; k++)
            input[k] = (uint8_t)(k % 251);
        tnf_blake3(digest, input, n);
        free(input);
        assert_string_equal(hex_of(digest, 32), official[i].hex);
    }
}

static void no_input_at_all(void **state)
{
    (void)state;
    uint8_t digest[32];
    tnf_blake3(digest, NULL, 0);
    assert_string_equal(hex_of(digest, 32), official[0].hex);
}

static void parameter_ids(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof params / sizeof params[0]; i++) {
        char name[2049];
        uint8_t digest[32], message[51] = "gpt-rs:param-key:v1";
        memset(name, 'x', sizeof name);
        if (params[i].name)
            memcpy(name, params[i].name, params[i].n);
        tnf_blake3(digest, name, params[i].n);
        assert_string_equal(hex_of(digest, 16), params[i].id);

        message[19] = 1;
        memcpy(message + 35, digest, 16);
        tnf_blake3(digest, message, sizeof message);
        assert_string_equal(hex_of(digest, 16), params[i].key);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(official_vectors),
        cmocka_unit_test(no_input_at_all),
        cmocka_unit_test(parameter_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
