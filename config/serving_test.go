package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/config"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.Size{
		"0": 0, "1": 1, "-1": -1, "512MiB": 512 << 20, "1 KiB": 1024, "1.5GiB": 3 << 29, "2GB": 2e9, "3kB": 3000, "4KB": 4000, "7B": 7, "9223372036854775807": 1<<63 - 1,
	} {
		var got config.Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "1.5", "1 bit", "1e400GiB", "9000000000GiB", "NaN", "InfB", "0x10", "1TiB", "1,000"} {
		var got config.Size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func FuzzSize(f *testing.F) {
	for _, seed := range []string{"512MiB", "1.5GB", "-1", "NaNB", "1e3kB", " 7 B"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got, again config.Size
		if got.UnmarshalText([]byte(text)) != nil {
			return
		}
		if err := again.UnmarshalText([]byte(got.String())); err != nil || again != got {
			t.Errorf("%q is %d, which is written %s and read as %d, %v", text, got, got, again, err)
		}
	})
}

func TestLoggerKeepsFormatAndLevel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", "level=INFO msg=b"},
		{"log: {format: json, level: warn}", ""},
		{"log: {format: json}", `"level":"INFO","msg":"b"`},
		{"log: {level: debug}", "level=DEBUG msg=a"},
	} {
		f, err := config.Parse([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		log := f.Logger(&out)
		log.Debug("a")
		log.Info("b")
		if !strings.Contains(out.String(), c.want) || c.want == "" && out.Len() > 0 || c.text == "" && strings.Contains(out.String(), "DEBUG") {
			t.Errorf("%q logs %q, want %q", c.text, out.String(), c.want)
		}
	}
}

func TestTLSIsReadBesideTheConfiguration(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, key := selfSigned(t)
	write("cert.pem", cert)
	write("key.pem", key)
	write("other.pem", []byte("no key"))
	write("good.yaml", []byte("tls: {cert: cert.pem, key: key.pem}\nsaved: {path: a.db}\n"))
	write("bad.yaml", []byte("tls: {cert: cert.pem, key: other.pem}\n"))
	f, err := config.Load(filepath.Join(folder, "good.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Gateway(); err != nil {
		t.Error(err)
	}
	if secure, err := f.TLSConfig(); err != nil || len(secure.Certificates) != 1 {
		t.Errorf("TLS is %v, %v", secure, err)
	}
	if got, want := f.SavedPath(), filepath.Join(folder, "a.db"); got != want {
		t.Errorf("saved answers are in %s, want %s", got, want)
	}
	if err := f.Set("saved.path", "b.db"); err != nil || f.SavedPath() != "b.db" {
		t.Errorf("after --set saved answers are in %s, %v; want b.db, where the command runs", f.SavedPath(), err)
	}
	f, err = config.Load(filepath.Join(folder, "bad.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Gateway(); err == nil || !strings.Contains(err.Error(), "bad.yaml: line 1: tls: cert and key cannot be used: ") {
		t.Errorf("error is %v", err)
	}
	if secure, err := (&config.File{}).TLSConfig(); secure != nil || err != nil {
		t.Errorf("without a section TLS is %v, %v", secure, err)
	}
}

func selfSigned(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// owners says in which package the default of a section's fields is decided, and how the fields are called there where that is
// not as here.
var owners = map[string]struct {
	folder string
	names  map[string]string
}{
	"Call": {"..", nil}, "Backoff": {"..", nil}, "RetryBudget": {"..", nil}, "Breaker": {"..", nil}, "Pace": {"..", nil},
	"Call.ConnectTimeout":      {"../transport", map[string]string{"ConnectTimeout": "Connect"}},
	"Call.FirstContentTimeout": {"../transport", map[string]string{"FirstContentTimeout": "FirstContent"}},
	"Call.IdleTimeout":         {"../transport", map[string]string{"IdleTimeout": "Idle"}},
	"Stream":                   {"../gateway", nil}, "Limits": {"../gateway", nil}, "Drain": {".", nil}, "Saved": {"../saved", nil},
}

var saidDefault = regexp.MustCompile(`: the default, ([0-9][0-9a-zA-Z.]*?)\.?(?:\s|$)`)

// A default that a comment here promises is that of the package that decides it.
func TestDefaultsAreThoseOfTheLibrary(t *testing.T) {
	t.Parallel()
	said, checked, found := promised(t), 0, map[string]map[string]constant.Value{}
	for field, text := range said {
		typ, name, _ := strings.Cut(field, ".")
		owner, known := owners[field]
		if !known {
			if owner, known = owners[typ]; !known {
				continue // an address, which is told by a test of its own
			}
		}
		if renamed, ok := owner.names[name]; ok {
			name = renamed
		}
		if found[owner.folder] == nil {
			found[owner.folder] = constantsOf(t, owner.folder)
		}
		constants := found[owner.folder]
		if len(constants) == 0 {
			continue // a package that is not there yet decides nothing
		}
		checked++
		got, ok := constants["default"+typ+name]
		if !ok {
			got, ok = constants["default"+name]
		}
		if !ok {
			t.Errorf("%s: no default of %s is found in %s", field, name, owner.folder)
			continue
		}
		if want := numberOf(t, text); constant.Compare(got, token.NEQ, want) {
			t.Errorf("%s says %s, and %s says %s", field, text, owner.folder, got)
		}
	}
	if checked < 25 {
		t.Errorf("%d defaults checked; the pattern no longer fits how they are written", checked)
	}
}

// promised are the defaults that the comments of this package tell, by type and field.
func promised(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, file := range parsed(t, ".") {
		ast.Inspect(file, func(n ast.Node) bool {
			typ, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := typ.Type.(*ast.StructType)
			for i := 0; ok && i < len(fields.Fields.List); i++ {
				f := fields.Fields.List[i]
				if found := saidDefault.FindStringSubmatch(strings.Join(strings.Fields(f.Doc.Text()), " ")); found != nil {
					all[typ.Name.Name+"."+f.Names[0].Name] = found[1]
				}
			}
			return false
		})
	}
	return all
}

func parsed(t *testing.T, folder string) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// constantsOf are the constants of a package that are numbers or times.
func constantsOf(t *testing.T, folder string) map[string]constant.Value {
	t.Helper()
	all := map[string]constant.Value{}
	for _, file := range parsed(t, folder) {
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				s := spec.(*ast.ValueSpec)
				for i, name := range s.Names {
					if i < len(s.Values) {
						all[name.Name] = valueOf(s.Values[i])
					}
				}
			}
		}
	}
	return all
}

var timeUnits = map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}

// valueOf works out a constant expression of numbers and time units.
func valueOf(expr ast.Expr) constant.Value {
	switch e := expr.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.SelectorExpr:
		return constant.MakeInt64(int64(timeUnits[e.Sel.Name]))
	case *ast.BinaryExpr:
		x, y := valueOf(e.X), valueOf(e.Y)
		if e.Op == token.SHL {
			n, _ := constant.Uint64Val(y)
			return constant.Shift(x, token.SHL, uint(n))
		}
		return constant.BinaryOp(x, e.Op, y)
	}
	return constant.MakeUnknown()
}

// numberOf reads what a comment says: a number, a time or a size.
func numberOf(t *testing.T, text string) constant.Value {
	t.Helper()
	if d, err := time.ParseDuration(text); err == nil && !strings.HasSuffix(text, "0") {
		return constant.MakeInt64(int64(d))
	}
	if strings.HasSuffix(text, "iB") {
		var s config.Size
		if err := s.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		return constant.MakeInt64(int64(s))
	}
	kind := token.INT
	if strings.Contains(text, ".") {
		kind = token.FLOAT
	}
	return constant.MakeFromLiteral(text, kind, 0)
}
