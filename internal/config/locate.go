package config

import (
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// index reads [3].
func index(key string) (uint, bool) {
	inner, ok := strings.CutPrefix(key, "[")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(inner, "]"), 10, 32)
	return uint(n), err == nil
}

// keyToken finds the token of a key in its mapping, so that a message about an
// unknown key points at the key and not at its value.
func keyToken(parent, value ast.Node, name string) *token.Token {
	if mapping, ok := parent.(ast.MapNode); ok {
		for values := mapping.MapRange(); values.Next(); {
			if tk := values.Key().GetToken(); tk != nil && tk.Value == name {
				return tk
			}
		}
	}
	return value.GetToken()
}
