/* SPDX-License-Identifier: MIT */
/* How dangerous would it be to call the functions that a pickle names? This code protects nobody by
 * itself: the machine runs nothing, and this only reports. Names are those of Python 3. */
#include "wire/pickle.h"

#include "base/str.h"

#include <stdio.h>
#include <string.h>

/* All names in these modules, or in modules inside them: they run code or commands, touch files or
 * the network, or fetch attributes by name. */
static const char dangerous_modules[] =
    "os posix nt subprocess sys socket ssl shutil runpy pty ctypes _ctypes importlib imp pkgutil "
    "zipimport code codeop bdb pdb cProfile profile trace timeit doctest pydoc asyncio "
    "multiprocessing threading signal tempfile webbrowser http urllib urllib2 httplib ftplib "
    "smtplib telnetlib imaplib requests aiohttp pickle _pickle cPickle dill cloudpickle joblib "
    "marshal shelve pip ensurepip venv distutils setuptools commands lib2to3 idlelib _pyio "
    "fileinput glob gzip bz2 lzma zipfile tarfile sqlite3 dbm numpy.testing numpy.distutils "
    "numpy.f2py numpy.compat numpy.ctypeslib numpy.lib.npyio numpy.lib._npyio_impl "
    "numpy.lib.format numpy.lib._datasource torch.hub torch.utils.cpp_extension torch._inductor "
    "torch._dynamo torch.distributed.rpc torch.jit._script torch.utils.collect_env _thread "
    "_posixsubprocess posixpath ntpath";

static const char dangerous_names[] =
    "builtins.eval builtins.exec builtins.execfile builtins.compile builtins.open builtins.input "
    "builtins.getattr builtins.setattr builtins.delattr builtins.globals builtins.locals "
    "builtins.vars builtins.__import__ builtins.breakpoint builtins.apply builtins.map "
    "builtins.filter builtins.reduce builtins.memoryview builtins.type operator.attrgetter "
    "operator.itemgetter operator.methodcaller functools.partial functools.reduce "
    "functools.partialmethod types.CodeType types.FunctionType io.open io.open_code io.FileIO "
    "_io.open _io.open_code _io.FileIO codecs.open uuid._get_command_stdout uuid._popen "
    "torch.load torch.save torch.from_file torch.serialization.load torch.serialization.save "
    "torch.jit.load torch.jit.save torch.storage._load_from_bytes numpy.load numpy.save "
    "numpy.savez numpy.savez_compressed numpy.savetxt numpy.loadtxt numpy.genfromtxt "
    "numpy.fromregex numpy.fromfile numpy.memmap numpy.DataSource numpy.core.memmap.memmap "
    "numpy._core.memmap.memmap numpy.core.multiarray.fromfile numpy._core.multiarray.fromfile "
    "numpy.core.records.fromfile numpy._core.records.fromfile numpy.rec.fromfile "
    "pandas.read_pickle copyreg.add_extension logging.config.listen";

/* Values and data classes. The other names of their modules are unknown. */
static const char plain_names[] =
    "builtins.list builtins.dict builtins.set builtins.frozenset builtins.tuple builtins.int "
    "builtins.float builtins.str builtins.bytes builtins.bytearray builtins.complex builtins.slice "
    "builtins.range builtins.object builtins.bool _codecs.encode argparse.Namespace "
    "copyreg._reconstructor collections.Counter collections.defaultdict collections.deque "
    "pathlib.Path pathlib.PosixPath pathlib.WindowsPath pathlib.PurePath pathlib.PurePosixPath "
    "pathlib.PureWindowsPath pathlib._local.Path pathlib._local.PosixPath "
    "pathlib._local.WindowsPath pathlib._local.PurePath pathlib._local.PurePosixPath "
    "pathlib._local.PureWindowsPath datetime.date datetime.time datetime.datetime "
    "datetime.timedelta datetime.timezone datetime.tzinfo uuid.UUID uuid.SafeUUID "
    "fractions.Fraction decimal.Decimal decimal.Context decimal.DecimalTuple";

/* The same, after the prefix "numpy.". */
static const char plain_numpy[] =
    "dtype ndarray generic matrix recarray record ma.core.MaskedArray ma.core._mareconstruct "
    "ma.core.MaskedConstant bool_ bool int8 int16 int32 int64 intc intp int_ longlong uint8 uint16 "
    "uint32 uint64 uintc uintp uint ulonglong float16 float32 float64 float128 longdouble half "
    "single double complex64 complex128 complex256 clongdouble str_ bytes_ unicode_ string_ void "
    "object_ datetime64 timedelta64 core.multiarray._reconstruct _core.multiarray._reconstruct "
    "core.multiarray.scalar _core.multiarray.scalar core.numeric._frombuffer "
    "_core.numeric._frombuffer core.records.record _core.records.record core.records.recarray "
    "_core.records.recarray core._internal._convert_to_stringdtype_kwargs "
    "_core._internal._convert_to_stringdtype_kwargs matrixlib.defmatrix.matrix "
    "random._pickle.__randomstate_ctor random._pickle.__generator_ctor "
    "random._pickle.__bit_generator_ctor random.__RandomState_ctor random.mtrand.RandomState "
    "random._generator.Generator random._mt19937.MT19937 random._pcg64.PCG64 "
    "random._pcg64.PCG64DXSM random._philox.Philox random._sfc64.SFC64 "
    "random.bit_generator.SeedSequence random.bit_generator.__pyx_unpickle_SeedSequence "
    "polynomial.polynomial.Polynomial";

/* Is the module, or one that contains it, on the list? */
static bool has_module(const char *list, tnf_str module)
{
    for (size_t end = 1; end <= module.n; end++)
        if ((end == module.n || module.p[end] == '.') &&
            tnf_str_listed((tnf_str) { module.p, end }, list))
            return true;
    return false;
}

/* "module.name"; a name longer than any known one is cut off. */
static tnf_str full_name(char out[300], const tnf_pickle_global *g)
{
    int n = snprintf(out, 300, "%.*s.%.*s", (int)(g->module.n < 140 ? g->module.n : 140),
                     g->module.n ? g->module.p : "", (int)(g->name.n < 140 ? g->name.n : 140),
                     g->name.n ? g->name.p : "");
    return (tnf_str) { out, n < 0 ? 0 : strlen(out) };
}

static bool is_plain(tnf_str full)
{
    if (tnf_str_listed(full, plain_names))
        return true;
    size_t skip = sizeof "numpy." - 1;
    return tnf_str_begins(full, "numpy.dtypes.") ||
           (tnf_str_begins(full, "numpy.") &&
            tnf_str_listed((tnf_str) { full.p + skip, full.n - skip }, plain_numpy));
}

bool tnf_pickle_dangerous(const tnf_pickle_node *global)
{
    const tnf_pickle_global *g = global->as.global;
    const char *dot = g->name.n ? memchr(g->name.p, '.', g->name.n) : NULL;
    char text[300];
    tnf_str full = full_name(text, g);
    if (g->computed || has_module(dangerous_modules, g->module) ||
        tnf_str_listed(full, dangerous_names))
        return true;
    if (tnf_str_begins(g->module, "transformers") && tnf_str_ends(g->name, "from_pretrained"))
        return true;
    if (!dot)
        return false;
    /* Python looks up one name in the other: Class.method, or module.function. */
    size_t first = g->module.n + 1 + (size_t)(dot - g->name.p);
    tnf_str outer = { full.p, first < full.n ? first : full.n };
    return !is_plain(outer) || tnf_str_listed(outer, dangerous_names);
}

bool tnf_pickle_call_dangerous(const tnf_pickle_node *call)
{
    const tnf_pickle_node *callee = call->as.call->callee;
    if (callee->kind == TNF_PICKLE_CALL)
        return true; /* the result of a call is called */
    return callee->kind == TNF_PICKLE_GLOBAL && tnf_pickle_dangerous(callee);
}

bool tnf_pickle_plain(const tnf_pickle_node *global)
{
    char text[300];
    return !tnf_pickle_dangerous(global) && is_plain(full_name(text, global->as.global));
}
