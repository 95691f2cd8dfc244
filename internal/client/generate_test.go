package client_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oapi-codegen/oapi-codegen/v2/pkg/codegen"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/api"
)

//go:generate go test -run TestTheClientAndTheDocumentsAreInStepWithTheRoutes -update .

var update = flag.Bool("update", false, "generate the client and the documents anew")

const (
	downgraded = "openapi-3.0.json"
	published  = "../../docs/reference/openapi.json"
	generated  = "gen.go"
)

func server() *api.Server {
	return api.New(api.Options{
		Tokens: new(access.Tokens), Version: "v1", Log: slog.New(slog.DiscardHandler),
	})
}

func documents(t *testing.T) (current, older []byte) {
	t.Helper()
	current, err := json.MarshalIndent(server().OpenAPI(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	compact, err := server().OpenAPI().Downgrade()
	if err != nil {
		t.Fatal(err)
	}
	var older2 bytes.Buffer
	if err := json.Indent(&older2, compact, "", "  "); err != nil {
		t.Fatal(err)
	}
	return append(current, '\n'), append(older2.Bytes(), '\n')
}

func generate(t *testing.T, document []byte) []byte {
	t.Helper()
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(document)
	if err != nil {
		t.Fatal(err)
	}
	config := codegen.Configuration{
		PackageName: "client",
		Generate:    codegen.GenerateOptions{Client: true, Models: true},
	}.UpdateDefaults()
	config.OutputOptions.ClientTypeName = "API"
	config.Compatibility.AlwaysPrefixEnumValues = true
	code, err := codegen.Generate(doc, config)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(code)
}

func TestTheClientAndTheDocumentsAreInStepWithTheRoutes(t *testing.T) {
	current, older := documents(t)
	for path, want := range map[string][]byte{published: current, downgraded: older, generated: generate(t, older)} {
		if *update {
			if err := os.WriteFile(path, want, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is out of step: run go test ./internal/client -update", path)
		}
	}
}
