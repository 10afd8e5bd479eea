package wire

// outlined is how many members an outline holds: more than any answer has.
const outlined = 32

// outline is an object whose members were found in one pass, for whoever asks
// for many of them by name. It gives what the node itself would give.
type outline struct {
	of   node
	n    int
	keys [outlined]node
	vals [outlined]node
}

// read makes it that of the node. The zero value is that of no object.
func (o *outline) read(of node) {
	o.of, o.n = of, 0
	of.members(func(key, value node) bool {
		o.keys[o.n], o.vals[o.n] = key, value
		o.n++
		return o.n < outlined
	})
}

// get returns the first member of the name, as node.get does.
func (o *outline) get(name string) node {
	for i := range o.n {
		if o.keys[i].is(name) {
			return o.vals[i]
		}
	}
	if o.n < outlined {
		return nil
	}
	return o.of.get(name)
}
