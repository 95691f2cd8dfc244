package control

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"gitlab.com/sluice-runners/sluice/internal/fleet"
)

// mostChangeKeys bounds how many keys an operation remembers.
const mostChangeKeys = 32

// key is the change's Idempotency-Key and digest, as the operation keeps them;
// the zero key is none.
func (ch *Change) key() fleet.ChangeKey {
	if ch.Key == "" {
		return fleet.ChangeKey{}
	}
	body, err := json.Marshal(ch)
	if err != nil { // a Change holds nothing that cannot be rendered
		return fleet.ChangeKey{}
	}
	return fleet.ChangeKey{Key: digest([]byte(ch.KeyScope + "\x00" + ch.Key)), Digest: digest(body)}
}

func digest(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// repeated says whether the operation was changed under this key already: an
// extension by ten minutes whose answer was lost is not done twice. Errors:
// CodeConflict for another change under the same key.
func repeated(op *fleet.Operation, key fleet.ChangeKey) (bool, error) {
	if key.Key == "" {
		return false, nil
	}
	at := slices.IndexFunc(op.Changes, func(known fleet.ChangeKey) bool { return known.Key == key.Key })
	if at < 0 {
		return false, nil
	}
	if op.Changes[at] != key {
		return false, fleet.Errorf(fleet.CodeConflict, "%s: the Idempotency-Key was used for another change", op.ID).
			WithHint("make a new key for each change")
	}
	return true, nil
}

// remember keeps a key with the operation; the oldest go.
func remember(op *fleet.Operation, key fleet.ChangeKey) {
	if key.Key == "" {
		return
	}
	op.Changes = append(slices.Clone(op.Changes), key)
	op.Changes = op.Changes[max(0, len(op.Changes)-mostChangeKeys):]
}
