package config

import "github.com/goccy/go-yaml/ast"

// blanks refuses every key and list entry without a value. Left in silence, a
// blank list of VMs would mean all of them, and a blank limit none.
func blanks(document ast.Node) []*problem {
	var found blankFinder
	ast.Walk(&found, document)
	return found
}

type blankFinder []*problem

// Visit implements ast.Visitor.
func (b *blankFinder) Visit(node ast.Node) ast.Visitor {
	switch n := node.(type) {
	case *ast.MappingValueNode:
		if _, null := n.Value.(*ast.NullNode); null {
			*b = append(*b, refuse(n.Key, n.Key.String()+" has no value", "give it one, or leave it out"))
		}
	case *ast.SequenceNode:
		for _, value := range n.Values {
			if _, null := value.(*ast.NullNode); null {
				*b = append(*b, refuse(value, "an entry without a value", "give it one, or leave it out"))
			}
		}
	}
	return b
}
