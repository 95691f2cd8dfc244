package api_test

import (
	"cmp"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/api"
)

//go:generate go test -run TestTheReferencePageIsInStep -update .

var update = flag.Bool("update", false, "write the generated page anew")

const page = "../../docs/reference/api.md"

const preamble = `# HTTP API

Generated from the OpenAPI 3.1 document, which the server answers at ` + "`/openapi.json`" + ` and which is
kept at [openapi.json](openapi.json).

On the Unix socket the mode of the socket (0600) is the authority. On TCP every request under
` + "`/api`" + ` needs ` + "`Authorization: Bearer TOKEN`" + ` (RFC 6750) with a token of ` + "`server.tokens`" + `, an
id_token or a follow token ([who may ask](../access.md)). ` + "`/livez`, `/readyz`, `/metrics` and `/openapi.json`" + `
need none; ` + "`/webhooks/gitlab`" + `, which is not in the document, has [credentials of its own](../webhooks.md).

Errors are problem documents (RFC 9457, ` + "`application/problem+json`" + `) with a ` + "`code`" + ` and a ` + "`hint`" + `:

| code | status |
| --- | --- |
| invalid, image_missing | 422 |
| unauthorized | 401 |
| forbidden | 403 |
| not_found | 404 |
| conflict, canceled | 409 |
| rate_limited | 429 |
| unavailable, quota, stockout | 503 |
| internal | 500 |

`

func reference() string {
	document := api.New(api.Options{Tokens: new(access.Tokens), Version: "v1", Log: slog.New(slog.DiscardHandler)}).OpenAPI()
	var b strings.Builder
	b.WriteString(preamble)
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		item := document.Paths[path]
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Patch, item.Delete} {
			if op != nil {
				route(&b, path, op)
			}
		}
	}
	b.WriteString("## Documents\n\n")
	schemas := document.Components.Schemas.Map()
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		fmt.Fprintf(&b, "### %s\n\n", name)
		fields(&b, schemas[name])
	}
	return b.String()
}

func route(b *strings.Builder, path string, op *huma.Operation) {
	fmt.Fprintf(b, "## %s %s\n\n%s.\n\n", op.Method, path, op.Summary)
	if op.Description != "" {
		fmt.Fprintf(b, "%s\n\n", op.Description)
	}
	if len(op.Parameters) > 0 {
		b.WriteString("| parameter | in | says |\n| --- | --- | --- |\n")
		for _, p := range op.Parameters {
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", p.Name, p.In, cmp.Or(p.Description, kind(p.Schema)))
		}
		b.WriteString("\n")
	}
	if op.RequestBody != nil {
		for _, media := range op.RequestBody.Content {
			fmt.Fprintf(b, "Body: %s.\n\n", link(media.Schema))
		}
	}
	for _, status := range slices.Sorted(maps.Keys(op.Responses)) {
		content := op.Responses[status].Content
		for _, kind := range slices.Sorted(maps.Keys(content)) {
			answer(b, status, kind, content[kind].Schema)
		}
	}
}

// answer says what comes back; JSON is not worth a word.
func answer(b *strings.Builder, status, kind string, schema *huma.Schema) {
	switch {
	case schema == nil || strings.HasSuffix(schema.Ref, "/Problem"):
	case kind == "application/json":
		fmt.Fprintf(b, "Answer %s: %s.\n\n", status, link(schema))
	case schema.Ref != "":
		fmt.Fprintf(b, "Answer %s as `%s`: %s, one a line.\n\n", status, kind, link(schema))
	default:
		fmt.Fprintf(b, "Answer %s as `%s`: %s\n\n", status, kind, schema.Description)
	}
}

func link(s *huma.Schema) string {
	name := s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
	return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
}

func fields(b *strings.Builder, s *huma.Schema) {
	b.WriteString("| field | is | says |\n| --- | --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		is := kind(s.Properties[name])
		if slices.Contains(s.Required, name) {
			is += ", always"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, is, s.Properties[name].Description)
	}
	b.WriteString("\n")
}

func kind(s *huma.Schema) string {
	switch {
	case s.Ref != "":
		return link(s)
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			words[i] = fmt.Sprint(e)
		}
		return strings.Join(words, ", ")
	case s.Type == huma.TypeArray:
		return "list of " + kind(s.Items)
	case s.Format == "date-time":
		return "time (RFC 3339)"
	case s.Type == "":
		return "anything"
	}
	return s.Type
}

func TestTheReferencePageIsInStep(t *testing.T) {
	want := reference()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is out of step: run go test ./internal/api -update", page)
	}
}
