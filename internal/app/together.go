package app

import "sync"

// together runs functions side by side and returns when all have ended.
func together(all ...func()) {
	var group sync.WaitGroup
	for _, f := range all {
		group.Go(f)
	}
	group.Wait()
}
