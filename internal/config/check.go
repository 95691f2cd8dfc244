package config

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"gitlab.com/sluice-runners/sluice/internal/spelling"
)

// checkSchema compares a document with the schema and says where in the file
// each difference is. Values are never repeated.
func checkSchema(document ast.Node, content any) []*problem {
	registry, root := schemaOf()
	found := &huma.ValidateResult{}
	huma.Validate(registry, root, huma.NewPathBuffer(nil, 0), huma.ModeWriteToServer, content, found)
	var list []*problem
	for _, err := range found.Errors {
		var detail *huma.ErrorDetail
		if !errors.As(err, &detail) {
			continue
		}
		list = append(list, explain(registry, root, document, detail))
	}
	return list
}

func explain(registry huma.Registry, root *huma.Schema, document ast.Node, detail *huma.ErrorDetail) *problem {
	path := keys(detail.Location)
	node, parent := locate(document, path)
	if detail.Message == "unexpected property" {
		name := path[len(path)-1]
		known := slices.Sorted(maps.Keys(under(registry, root, path[:len(path)-1]).Properties))
		hint := "known: " + strings.Join(known, ", ")
		if near := spelling.Nearest(name, known); near != "" {
			hint = "did you mean " + near + "?"
		}
		return at(keyToken(parent, node, name), "unknown key "+where(path), hint)
	}
	schema := under(registry, root, path)
	switch {
	case schema.Title == secretTitle:
		if detail.Message == "expected object" {
			return refuse(node, where(path)+": a secret must not be written into the configuration", secretHint)
		}
		return refuse(node, where(path)+": a secret has exactly one place", secretHint)
	case schema.Title == durationTitle:
		return refuse(node, where(path)+": not a positive duration with a unit", durationHint)
	case schema.Title == claimTitle, schema.Title == textTitle:
		return explainText(node, where(path))
	}
	return refuse(node, where(path)+": "+detail.Message, "")
}

// where names a key for people; "" is the file itself.
func where(path []string) string {
	if len(path) == 0 {
		return "the file"
	}
	return strings.ReplaceAll(strings.Join(path, "."), ".[", "[")
}

// keys splits a location as huma writes it: fleets.gcp.vms.names[0].
func keys(location string) []string {
	location = strings.ReplaceAll(location, "[", ".[")
	return strings.FieldsFunc(location, func(r rune) bool { return r == '.' })
}

// under follows a path through the schema.
func under(registry huma.Registry, schema *huma.Schema, path []string) *huma.Schema {
	for _, key := range path {
		schema = resolve(registry, schema)
		switch next := schema.Properties[key]; {
		case next != nil:
			schema = next
		case strings.HasPrefix(key, "[") && schema.Items != nil:
			schema = schema.Items
		default:
			if extra, ok := schema.AdditionalProperties.(*huma.Schema); ok {
				schema = extra
				continue
			}
			return &huma.Schema{}
		}
	}
	return resolve(registry, schema)
}

func resolve(registry huma.Registry, schema *huma.Schema) *huma.Schema {
	for schema.Ref != "" {
		schema = registry.SchemaFromRef(schema.Ref)
	}
	return schema
}

// locate finds the node at a path, or the last one on the way, and the
// mapping that holds it.
func locate(document ast.Node, path []string) (node, parent ast.Node) {
	node = document
	for i := range path {
		next, err := pathTo(path[:i+1]).FilterNode(document)
		if err != nil || next == nil {
			return node, node
		}
		node, parent = next, node
	}
	return node, parent
}

func pathTo(path []string) *yaml.Path {
	builder := (&yaml.PathBuilder{}).Root()
	for _, key := range path {
		if index, ok := index(key); ok {
			builder = builder.Index(index)
			continue
		}
		builder = builder.Child(key)
	}
	return builder.Build()
}
