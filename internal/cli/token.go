package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitlab.com/sluice-runners/sluice/internal/access"
	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

func (p *program) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "token", Short: "Make bearer tokens for the server",
		Example: "  sluice token create alice",
		Args:    noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.tokenCreateCommand())
	return cmd
}

func (p *program) tokenCreateCommand() *cobra.Command {
	var expires string
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a token, and the line for server.tokens",
		Long: `Create prints a new token, once, and the entry that goes under server.tokens:
that holds its hash only. The token itself is stored nowhere: hand it to its
owner, who sets SLUICE_TOKEN. Whoever holds it may do everything; pipelines need
none, they come with an id_token.`,
		Example: "  sluice token create alice --expires 90d",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			until, err := p.expiry(expires)
			if err != nil {
				return usage(err)
			}
			return p.printToken(args[0], until)
		},
	}
	cmd.Flags().StringVar(&expires, "expires", "", "refuse the token after `TIME`: 90d, 12h (else never)")
	return cmd
}

func (p *program) printToken(name string, until *time.Time) error {
	if !tokenName.MatchString(name) {
		return usage(fleet.Errorf(fleet.CodeInvalid, "%q is no name for a token", name).
			WithHint("letters, digits, dots, dashes, underscores and @, at most 64: it goes into the journal with every change"))
	}
	token, hash, err := access.NewToken(nil)
	if err != nil {
		return err
	}
	if p.json() {
		out := map[string]string{"name": name, "token": token, "sha256": hash}
		if until != nil {
			out["expires"] = until.Format(time.RFC3339)
		}
		return p.printJSON(out)
	}
	entry := fmt.Sprintf("{name: %s, sha256: %s", strconv.Quote(name), hash)
	if until != nil {
		entry += ", expires: " + until.Format(time.RFC3339)
	}
	_, err = fmt.Fprintf(p.Stdout, "token (shown once):  %s\nserver.tokens entry: - %s}\n", token, entry)
	return err
}

// tokenName is what a token may be called.
var tokenName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$`)

// expiry reads how long a token lives: a duration, days as 90d too. Nil for "".
func (p *program) expiry(text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	length, err := time.ParseDuration(text)
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		var n int64
		if n, err = strconv.ParseInt(days, 10, 16); err == nil {
			length = time.Duration(n) * 24 * time.Hour
		}
	}
	if err != nil || length <= 0 {
		return nil, fleet.Errorf(fleet.CodeInvalid, "--expires %q is no length of time", text).WithHint("write 90d, 12h or 30m")
	}
	at := p.Now().Add(length).UTC().Truncate(time.Second)
	return &at, nil
}
