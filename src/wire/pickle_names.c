/* SPDX-License-Identifier: MIT */
/* Python 2 names, which pickles of protocols 0 to 2 contain, and their Python 3 names. An attack
 * that names __builtin__.eval means builtins.eval. */
#include "wire/pickle.h"

#include "base/str.h"

#include <string.h>

static const struct name_pair {
    const char *old_module, *old_name, *module, *name;
} names[] = {
    { "__builtin__", "xrange", "builtins", "range" },
    { "__builtin__", "reduce", "functools", "reduce" },
    { "__builtin__", "intern", "sys", "intern" },
    { "__builtin__", "unichr", "builtins", "chr" },
    { "__builtin__", "unicode", "builtins", "str" },
    { "__builtin__", "long", "builtins", "int" },
    { "itertools", "izip", "builtins", "zip" },
    { "itertools", "imap", "builtins", "map" },
    { "itertools", "ifilter", "builtins", "filter" },
    { "itertools", "ifilterfalse", "itertools", "filterfalse" },
    { "itertools", "izip_longest", "itertools", "zip_longest" },
    { "UserDict", "IterableUserDict", "collections", "UserDict" },
    { "UserList", "UserList", "collections", "UserList" },
    { "UserString", "UserString", "collections", "UserString" },
    { "whichdb", "whichdb", "dbm", "whichdb" },
    { "_socket", "fromfd", "socket", "fromfd" },
    { "_multiprocessing", "Connection", "multiprocessing.connection", "Connection" },
    { "multiprocessing.process", "Process", "multiprocessing.context", "Process" },
    { "multiprocessing.forking", "Popen", "multiprocessing.popen_fork", "Popen" },
    { "urllib", "ContentTooShortError", "urllib.error", "ContentTooShortError" },
    { "urllib", "getproxies", "urllib.request", "getproxies" },
    { "urllib", "pathname2url", "urllib.request", "pathname2url" },
    { "urllib", "quote_plus", "urllib.parse", "quote_plus" },
    { "urllib", "quote", "urllib.parse", "quote" },
    { "urllib", "unquote_plus", "urllib.parse", "unquote_plus" },
    { "urllib", "unquote", "urllib.parse", "unquote" },
    { "urllib", "url2pathname", "urllib.request", "url2pathname" },
    { "urllib", "urlcleanup", "urllib.request", "urlcleanup" },
    { "urllib", "urlencode", "urllib.parse", "urlencode" },
    { "urllib", "urlopen", "urllib.request", "urlopen" },
    { "urllib", "urlretrieve", "urllib.request", "urlretrieve" },
    { "urllib2", "HTTPError", "urllib.error", "HTTPError" },
    { "urllib2", "URLError", "urllib.error", "URLError" },
    { "multiprocessing", "AuthenticationError", "multiprocessing.context", "AuthenticationError" },
    { "multiprocessing", "BufferTooShort", "multiprocessing.context", "BufferTooShort" },
    { "multiprocessing", "ProcessError", "multiprocessing.context", "ProcessError" },
    { "multiprocessing", "TimeoutError", "multiprocessing.context", "TimeoutError" },
    { "__builtin__", "basestring", "builtins", "str" },
    { "UserDict", "UserDict", "collections", "UserDict" },
    { "socket", "_socketobject", "socket", "SocketType" },
};

static const struct module_pair {
    const char *old, *module;
} modules[] = {
    { "exceptions", "builtins" },
    { "__builtin__", "builtins" },
    { "copy_reg", "copyreg" },
    { "Queue", "queue" },
    { "SocketServer", "socketserver" },
    { "ConfigParser", "configparser" },
    { "repr", "reprlib" },
    { "tkFileDialog", "tkinter.filedialog" },
    { "tkSimpleDialog", "tkinter.simpledialog" },
    { "tkColorChooser", "tkinter.colorchooser" },
    { "tkCommonDialog", "tkinter.commondialog" },
    { "Dialog", "tkinter.dialog" },
    { "Tkdnd", "tkinter.dnd" },
    { "tkFont", "tkinter.font" },
    { "tkMessageBox", "tkinter.messagebox" },
    { "ScrolledText", "tkinter.scrolledtext" },
    { "Tkconstants", "tkinter.constants" },
    { "Tix", "tkinter.tix" },
    { "ttk", "tkinter.ttk" },
    { "Tkinter", "tkinter" },
    { "markupbase", "_markupbase" },
    { "_winreg", "winreg" },
    { "thread", "_thread" },
    { "dummy_thread", "_dummy_thread" },
    { "dbhash", "dbm.bsd" },
    { "dumbdbm", "dbm.dumb" },
    { "dbm", "dbm.ndbm" },
    { "gdbm", "dbm.gnu" },
    { "xmlrpclib", "xmlrpc.client" },
    { "SimpleXMLRPCServer", "xmlrpc.server" },
    { "httplib", "http.client" },
    { "htmlentitydefs", "html.entities" },
    { "HTMLParser", "html.parser" },
    { "Cookie", "http.cookies" },
    { "cookielib", "http.cookiejar" },
    { "BaseHTTPServer", "http.server" },
    { "test.test_support", "test.support" },
    { "commands", "subprocess" },
    { "urlparse", "urllib.parse" },
    { "robotparser", "urllib.robotparser" },
    { "urllib2", "urllib.request" },
    { "anydbm", "dbm" },
    { "_abcoll", "collections.abc" },
    { "cPickle", "pickle" },
    { "_elementtree", "xml.etree.ElementTree" },
    { "FileDialog", "tkinter.filedialog" },
    { "SimpleDialog", "tkinter.simpledialog" },
    { "DocXMLRPCServer", "xmlrpc.server" },
    { "SimpleHTTPServer", "http.server" },
    { "CGIHTTPServer", "http.server" },
    { "UserDict", "collections" },
    { "UserList", "collections" },
    { "UserString", "collections" },
    { "whichdb", "dbm" },
    { "StringIO", "io" },
    { "cStringIO", "io" },
};

static tnf_str str_of(const char *word)
{
    return (tnf_str) { word, strlen(word) };
}

void tnf_pickle_rename(tnf_pickle_global *g)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tnf_str_is(g->module, names[i].old_module) && tnf_str_is(g->name, names[i].old_name)) {
            g->module = str_of(names[i].module);
            g->name = str_of(names[i].name);
            return;
        }
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (tnf_str_is(g->module, modules[i].old)) {
            g->module = str_of(modules[i].module);
            return;
        }
}
