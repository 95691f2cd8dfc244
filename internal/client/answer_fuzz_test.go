package client

import (
	"net/http"
	"testing"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// Whatever stands where a problem document should be: it becomes an error with a
// code that says whether asking again may help.
func FuzzProblem(f *testing.F) {
	f.Add(403, `{"code":"forbidden","detail":"no rule allows it","hint":"ask","errors":[{"location":"body.vms","message":"x","value":1}]}`)
	f.Add(502, `<html>bad gateway</html>`)
	f.Add(400, `{"errors":[null,{}],"code":"invalid"}`)
	f.Add(200, `null`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		c := &Client{where: "https://sluice.example.com"}
		err := c.refused(&http.Response{StatusCode: status, Status: http.StatusText(status)}, []byte(body))
		if err == nil || err.Error() == "" || fleet.CodeOf(err) == "" {
			t.Errorf("%q: %v", body, err)
		}
	})
}
