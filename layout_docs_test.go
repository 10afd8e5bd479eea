package holdfast_test

// What the documents and comments say about the code, held against the code: names that no longer exist and defaults that
// are no longer true are what documents rot from.

import (
	"go/ast"
	"go/constant"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// documents are the only prose that may name code. One that does not exist is not read.
var documents = []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"}

// notOurs are capitalised words in back-ticks that are nobody's exported name: header fields and patterns.
var notOurs = []string{"Date", "Authorization", "FuzzXxx"}

var (
	codeSpan    = regexp.MustCompile("`([^`\n]+)`")
	makeTarget  = regexp.MustCompile(`^(?:\$ )?make ([a-z]+)`)
	subcommand  = regexp.MustCompile(`^(?:\$ )?(?:bin/)?holdfast ([a-z]+)`)
	flagName    = regexp.MustCompile(`(?:^| )--([a-z][a-z-]+)`)
	qualified   = regexp.MustCompile(`^([a-z]+)\.([A-Z]\w*)(?:\.([A-Z]\w*))?$`)
	exported    = regexp.MustCompile(`^([A-Z]\w*)(?:\.([A-Z]\w*))?$`)
	unexported  = regexp.MustCompile(`^[a-z]+[A-Z]\w*$`)
	filePath    = regexp.MustCompile(`^\.?[\w-]+(?:[./][\w.-]+)*/?$`)
	fileEnding  = regexp.MustCompile(`\.(go|md|ya?ml|mod|sum|txtar|json)$`)
	saidDefault = regexp.MustCompile(`Default: (\d+(?:\.\d+)?(?:ns|us|ms|s|m|h| KiB| MiB)?)(?:[.,;\s]|$)`)
	madeOrTyped = regexp.MustCompile(`^(bin|dist|\.tools|application|text)/|^[\w-]+\.[a-z]+/`) // made by make, media types, import paths
)

// index is what the code has: exported names per package, the words a command line may hold, the make targets.
type index struct {
	names    map[string]bool // "Policy", "Policy.Judge", and both again behind the package: "holdfast.Policy"
	packages map[string]bool
	commands map[string]bool // string literals of the command: subcommands and flags are among them
	targets  map[string]bool
}

func newIndex(t *testing.T) index {
	t.Helper()
	ix := index{names: map[string]bool{}, packages: map[string]bool{}, commands: map[string]bool{}, targets: map[string]bool{}}
	for _, s := range tree(t) {
		pkg := s.file.Name.Name
		ix.packages[strings.TrimSuffix(pkg, "_test")] = true
		for _, decl := range s.file.Decls {
			for _, name := range declared(decl) {
				ix.names[name], ix.names[pkg+"."+name] = true, true
			}
		}
		if s.dir == "cmd/holdfast" && !s.test {
			ast.Inspect(s.file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					text, _ := strconv.Unquote(lit.Value)
					first, _, _ := strings.Cut(text, " ")
					ix.commands[first] = true
				}
				return true
			})
		}
	}
	for _, built := range []string{"help", "completion", "version"} { // cobra's own
		ix.commands[built] = true
	}
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`(?m)^([a-z]+):`).FindAllSubmatch(text, -1) {
		ix.targets[string(found[1])] = true
	}
	return ix
}

// declared lists what a declaration adds to its package: names, and Type.Name for methods, fields and interface methods.
func declared(decl ast.Decl) []string {
	var names []string
	switch d := decl.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			name = receiver(d.Recv.List[0].Type) + "." + name
		}
		names = append(names, name)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names = append(names, name.Name)
				}
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
				var members *ast.FieldList
				switch typ := s.Type.(type) {
				case *ast.StructType:
					members = typ.Fields
				case *ast.InterfaceType:
					members = typ.Methods
				}
				for _, member := range fields(members) {
					names = append(names, s.Name.Name+"."+member)
				}
			}
		}
	}
	return names
}

func receiver(typ ast.Expr) string {
	switch x := typ.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

func fields(list *ast.FieldList) []string {
	var names []string
	if list == nil {
		return nil
	}
	for _, field := range list.List {
		for _, name := range field.Names {
			names = append(names, name.Name)
		}
	}
	return names
}

// missing says what a code span names that does not exist, or "". Words it does not know how to hold against the code pass.
func (ix index) missing(span, module string) string {
	word, _, _ := strings.Cut(span, "(") // `Do(ctx, policy, f)` names Do
	if found := makeTarget.FindStringSubmatch(span); found != nil {
		if !ix.targets[found[1]] {
			return "make target " + found[1]
		}
		return ""
	}
	if ix.packages["main"] {
		if found := subcommand.FindStringSubmatch(span); len(found) == 2 && !ix.commands[found[1]] {
			return "subcommand " + found[1]
		}
		if strings.HasPrefix(span, "--") || subcommand.MatchString(span) {
			for _, found := range flagName.FindAllStringSubmatch(span, -1) {
				if !ix.commands[found[1]] {
					return "flag --" + found[1]
				}
			}
		}
	}
	if found := qualified.FindStringSubmatch(word); found != nil {
		if !fileEnding.MatchString(word) && ix.packages[found[1]] && !ix.names[word] {
			return "name " + word
		}
		return ""
	}
	if unexported.MatchString(word) || exported.MatchString(word) && !fileEnding.MatchString(word) && strings.ToUpper(word) != word {
		if !ix.names[word] && !slices.Contains(notOurs, word) {
			return "name " + word
		}
		return ""
	}
	inside := strings.TrimPrefix(span, module+"/")
	isPath := strings.Contains(inside, "/") || fileEnding.MatchString(inside)
	_, placed := floors[strings.TrimSuffix(inside, "/")] // a package that has its floor may be named before it is built
	if isPath && filePath.MatchString(inside) && !madeOrTyped.MatchString(inside) && !placed {
		if _, err := os.Stat(inside); err != nil {
			return "path " + inside
		}
	}
	return ""
}

// spans lists the code spans of a document with their lines; in fenced blocks, the lines that run make or holdfast.
func spans(text string) map[string]int {
	found, fenced := map[string]int{}, false
	for i, line := range strings.Split(text, "\n") {
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(trimmed, "```"):
			fenced = !fenced
		case fenced && (makeTarget.MatchString(trimmed) || subcommand.MatchString(trimmed)):
			command, _, _ := strings.Cut(trimmed, " #")
			found[command] = i + 1
		case !fenced:
			for _, span := range codeSpan.FindAllStringSubmatch(line, -1) {
				found[span[1]] = i + 1
			}
		}
	}
	return found
}

func TestDocumentsNameWhatExists(t *testing.T) {
	ix, module := newIndex(t), modulePath(t)
	for _, name := range documents {
		text, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			continue
		}
		for span, line := range spans(string(text)) {
			if what := ix.missing(span, module); what != "" {
				t.Errorf("%s:%d: `%s`: no %s", name, line, span, what)
			}
		}
	}
}

func TestDocumentsNameWhatExistsRefuses(t *testing.T) {
	ix := index{
		names:    map[string]bool{"Policy": true, "Policy.Judge": true, "holdfast.Policy": true, "holdfast.Policy.Judge": true, "Do": true, "codeRules": true},
		packages: map[string]bool{"holdfast": true, "main": true},
		commands: map[string]bool{"serve": true, "upstream": true},
		targets:  map[string]bool{"test": true},
	}
	for _, row := range []struct{ span, missing string }{
		{"Policy", ""}, {"Policies", "name Policies"},
		{"Policy.Judge", ""}, {"Policy.Judges", "name Policy.Judges"},
		{"holdfast.Policy", ""}, {"holdfast.Polcy", "name holdfast.Polcy"}, {"http.Client", ""},
		{"codeRules", ""}, {"codeRule", "name codeRule"},
		{"Do(ctx, &policy, f)", ""}, {"Done(ctx)", "name Done"},
		{"go.mod", ""}, {"attic.go", "path attic.go"}, {"internal/wire/", ""}, {"cmd/holdfast", ""}, {"internal/attic", "path internal/attic"},
		{"keep/internal/attic", "path internal/attic"}, {"application/json", ""}, {"golang.org/x/time", ""}, {"/v1/messages", ""}, {"bin/holdfast", ""},
		{"make test", ""}, {"make module PATH=x", "make target module"},
		{"holdfast serve --upstream URL", ""}, {"holdfast server", "subcommand server"}, {"--upstream", ""}, {"holdfast serve --up", "flag --up"},
		{"ANTHROPIC_API_KEY", ""}, {"retry-after", ""},
	} {
		if got := ix.missing(row.span, "keep"); got != row.missing {
			t.Errorf("missing(%q) = %q, want %q", row.span, got, row.missing)
		}
	}
	got := spans("Use `Do`.\n```sh\nmake test   # all\nls\n```\n")
	if len(got) != 2 || got["Do"] != 1 || got["make test  "] != 3 {
		t.Errorf("spans = %v", got)
	}
}

// A field comment that says "Default: 500ms" needs a constant defaultField, or defaultTypeField, of that value.
func TestDefaultsInCommentsAreTrue(t *testing.T) {
	constants := map[string]constant.Value{} // by folder and name
	for _, s := range tree(t) {
		for name, expr := range constantsOf(s) {
			constants[s.dir+" "+name] = value(expr)
		}
	}
	checked := 0
	for _, s := range tree(t) {
		for name, said := range defaultsOf(s) {
			typ, field, _ := strings.Cut(name, ".")
			got := constants[s.dir+" default"+typ+field]
			if got == nil {
				got = constants[s.dir+" default"+field]
			}
			if got == nil {
				t.Errorf("%s: %s says \"Default: %s\", but the package has no constant default%s", s.name, name, said, field)
			} else if !constant.Compare(amount(said), token.EQL, got) {
				t.Errorf("%s: %s says \"Default: %s\", but the constant is %s", s.name, name, said, got)
			}
			checked++
		}
	}
	if checked < 10 {
		t.Errorf("found %d defaults in comments; the pattern no longer fits how they are written", checked)
	}
}

// constantsOf lists the constants that code declares with a value.
func constantsOf(s source) map[string]ast.Expr {
	found := map[string]ast.Expr{}
	for _, decl := range s.file.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.CONST || s.test {
			continue
		}
		for _, spec := range d.Specs {
			for i, name := range spec.(*ast.ValueSpec).Names {
				if values := spec.(*ast.ValueSpec).Values; i < len(values) {
					found[name.Name] = values[i]
				}
			}
		}
	}
	return found
}

// defaultsOf lists the fields, as Type.Field, whose comment says a number or time as the default.
func defaultsOf(s source) map[string]string {
	found := map[string]string{}
	ast.Inspect(s.file, func(n ast.Node) bool {
		typ, ok := n.(*ast.TypeSpec)
		if !ok || s.test {
			return !s.test
		}
		structure, ok := typ.Type.(*ast.StructType)
		for i := 0; ok && i < len(structure.Fields.List); i++ {
			field := structure.Fields.List[i]
			comment := strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")
			if claim := saidDefault.FindStringSubmatch(comment); claim != nil && len(field.Names) == 1 {
				found[typ.Name.Name+"."+field.Names[0].Name] = claim[1]
			}
		}
		return false
	})
	return found
}

var units = map[string]int64{
	"": 1, " KiB": 1 << 10, " MiB": 1 << 20,
	"ns": 1, "us": int64(time.Microsecond), "ms": int64(time.Millisecond), "s": int64(time.Second), "m": int64(time.Minute), "h": int64(time.Hour),
	"Nanosecond": 1, "Microsecond": int64(time.Microsecond), "Millisecond": int64(time.Millisecond), "Second": int64(time.Second), "Minute": int64(time.Minute), "Hour": int64(time.Hour),
}

// amount is what a comment says, in nanoseconds if it is a time.
func amount(said string) constant.Value {
	number := strings.TrimRight(said, "abcdefghijklmnopqrstuvwxyzKMB ")
	n := constant.MakeFromLiteral(number, token.FLOAT, 0)
	return constant.BinaryOp(n, token.MUL, constant.MakeInt64(units[strings.TrimPrefix(said, number)]))
}

// value computes a constant of numbers and units of time; nil if it is anything else.
func value(expr ast.Expr) constant.Value {
	switch x := expr.(type) {
	case *ast.BasicLit:
		if x.Kind == token.INT || x.Kind == token.FLOAT {
			return constant.MakeFromLiteral(x.Value, x.Kind, 0)
		}
	case *ast.SelectorExpr:
		if unit, ok := units[x.Sel.Name]; ok {
			return constant.MakeInt64(unit)
		}
	case *ast.ParenExpr:
		return value(x.X)
	case *ast.BinaryExpr:
		left, right := value(x.X), value(x.Y)
		switch {
		case left == nil || right == nil:
			return nil
		case x.Op == token.SHL:
			by, _ := constant.Uint64Val(right)
			return constant.Shift(left, x.Op, uint(by))
		case x.Op == token.ADD || x.Op == token.SUB || x.Op == token.MUL:
			return constant.BinaryOp(left, x.Op, right)
		}
	}
	return nil
}
