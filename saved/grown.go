package saved

import "slices"

// grown is a JSON value that grows by deltas. A value is taken apart only where a delta goes into it, so that each delta
// costs what it is long and not what there is already.
type grown struct {
	text    raw // the value, unless it is taken apart
	form    byte
	members []grownMember // of an object, form '{'
	items   []*grown      // of an array, form '['
	indexed map[int]*grown
}

type grownMember struct {
	name  string
	value *grown
}

// grownDepth bounds how deep a delta is looked into; the real ones go to 3. What lies deeper is replaced.
const grownDepth = 6

// whole are members of which every delta has all: a provider that sends one again means the same one.
var whole = []string{"id", "type", "role", "name", "object", "model"}

var errTooMany = notGood("it has too many parts")

// at returns a member, nil when there is none.
func (g *grown) at(name string) *grown {
	for _, m := range g.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// add lets an object grow by a delta: text is appended, arrays become longer or, where their elements have an index, grow
// element by element, objects grow, and anything else is replaced. A null changes nothing.
func (g *grown) add(delta object) error { return g.addMembers(delta, 0) }

func (g *grown) addMembers(delta object, depth int) error {
	if err := g.takeApart(); err != nil {
		return err
	}
	for _, m := range delta {
		old := g.at(m.name)
		if old == nil {
			if len(g.members) >= maxMembers {
				return errTooMany
			}
			old = &grown{}
			g.members = append(g.members, grownMember{m.name, old})
		}
		if err := old.addValue(m, depth); err != nil {
			return err
		}
	}
	return nil
}

func (g *grown) addValue(m member, depth int) error {
	empty := g.form == 0 && isNull(g.text)
	switch {
	case isNull(m.value) && (g.form != 0 || g.text != nil):
	case isString(m.value) && g.form == 0 && isString(g.text):
		if !slices.Contains(whole, m.name) {
			g.text = joined(g.text, m.value)
		} else if !filled(g.text) {
			g.text = m.value
		}
	case depth < grownDepth && startsWith(m.value, '[') && (empty || g.is('[')):
		return g.addItems(m, depth)
	case depth < grownDepth && startsWith(m.value, '{') && g.is('{'):
		part, fits := readObject(m.value)
		if !fits {
			return errTooMany
		}
		return g.addMembers(part, depth+1)
	default:
		*g = grown{text: m.value}
	}
	return nil
}

func (g *grown) addItems(m member, depth int) error {
	if isNull(g.text) {
		g.text = emptyList
	}
	if err := g.takeApart(); err != nil {
		return err
	}
	list, _ := readArray(m.value)
	for _, text := range list {
		item, isObject := readObject(text)
		index, known := numberOf(item.at("index"))
		if !isObject || !known {
			g.items = append(g.items, &grown{text: text})
			continue
		}
		if m.name == "tool_calls" {
			item = item.without("index") // which only says where the delta belongs
		}
		old := g.indexed[index]
		if old == nil {
			if len(g.indexed) >= maxMembers {
				return errTooMany
			}
			if g.indexed == nil {
				g.indexed = map[int]*grown{}
			}
			old = &grown{text: emptyObject}
			g.indexed[index] = old
			g.items = append(g.items, old)
		} else {
			item = item.without("index")
		}
		if err := old.addMembers(item, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// is reports whether the value is an object or an array, by its bracket.
func (g *grown) is(bracket byte) bool {
	return g.form == bracket || g.form == 0 && startsWith(g.text, bracket)
}

func startsWith(value raw, bracket byte) bool { return len(value) > 0 && value[0] == bracket }

// takeApart makes members or items of a value that nothing was added to yet.
func (g *grown) takeApart() error {
	switch {
	case g.form != 0:
		return nil
	case startsWith(g.text, '['):
		list, _ := readArray(g.text)
		g.form = '['
		for _, item := range list {
			g.items = append(g.items, &grown{text: item})
		}
	default:
		members, _ := readObject(g.text)
		if len(members) > maxMembers {
			return errTooMany
		}
		g.form = '{'
		for _, m := range members {
			g.members = append(g.members, grownMember{m.name, &grown{text: m.value}})
		}
	}
	g.text = nil
	return nil
}

func (g *grown) append(to []byte) []byte {
	switch g.form {
	case '{':
		to = append(to, '{')
		for i, m := range g.members {
			if i > 0 {
				to = append(to, ',')
			}
			to = append(appendQuoted(to, m.name), ':')
			to = m.value.append(to)
		}
		return append(to, '}')
	case '[':
		to = append(to, '[')
		for i, item := range g.items {
			if i > 0 {
				to = append(to, ',')
			}
			to = item.append(to)
		}
		return append(to, ']')
	}
	if g.text == nil {
		return append(to, null...)
	}
	return append(to, g.text...)
}

// object returns what has grown, as far as it is an object.
func (g *grown) object() object {
	o, _ := readObject(g.append(nil))
	return o
}
