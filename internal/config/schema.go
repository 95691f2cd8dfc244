package config

import (
	"encoding/json"
	"reflect"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

const defs = "#/$defs/"

// schemaOf builds the schema of the whole file once: the same one validates,
// is printed by `sluice config schema` and becomes the reference page.
var schemaOf = sync.OnceValues(func() (huma.Registry, *huma.Schema) {
	registry := huma.NewMapRegistry(defs, huma.DefaultSchemaNamer)
	root := registry.Schema(reflect.TypeFor[Config](), false, "Config")
	return registry, root
})

// Schema renders the JSON Schema (draft 2020-12) of the configuration file.
func Schema() ([]byte, error) {
	registry, root := schemaOf()
	body, err := json.Marshal(root)
	if err != nil {
		return nil, err
	}
	var document map[string]any
	if err := json.Unmarshal(body, &document); err != nil {
		return nil, err
	}
	document["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	document["title"] = "Sluice configuration"
	parts := registry.Map()
	delete(parts, "Config")
	document["$defs"] = parts
	return json.MarshalIndent(document, "", "  ")
}
