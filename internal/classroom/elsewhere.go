package classroom

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// original is the cluster in the folder in which it was made: its processes and files name that folder, also after the
// checkout was moved or copied.
func (e *embedded) original(found record) *embedded {
	options := e.options
	options.Repo.Root = found.Root
	return newEmbedded(options)
}

// isCopy tells whether a cluster made elsewhere still belongs to the checkout there, so that only a copy of it is here.
func (e *embedded) isCopy(found record) bool {
	original := e.original(found)
	there, err := os.Stat(original.path(".json"))
	if err != nil {
		return false
	}
	here, err := os.Stat(e.path(".json"))
	return err != nil || !os.SameFile(there, here)
}

// checkRoot refuses a cluster that was made in another folder.
func (e *embedded) checkRoot(found record) error {
	switch {
	case found.Root == e.options.Repo.Root:
		return nil
	case e.isCopy(found):
		return fmt.Errorf("cluster %s is a copy of the one in %s, and its files name that folder: `make down` removes the copy and leaves the other alone, `make up` then makes a new one", e.options.Name, found.Root)
	}
	return e.damaged("it was made in " + found.Root + ", and its files name that folder")
}

// endOriginal ends the processes of a cluster that was made in another folder, unless that folder still has it.
func (e *embedded) endOriginal(ctx context.Context) error {
	found, err := readRecord(e.path(".json"))
	if err != nil || found.Root == e.options.Repo.Root {
		return nil // an unreadable record names no folder
	}
	if e.isCopy(found) {
		fmt.Fprintf(e.options.Out, "Cluster %s was copied from %s: what is there is left alone.\n", e.options.Name, found.Root)
		return nil
	}
	original := e.original(found)
	return errors.Join(original.endOrphans(ctx), endAll(ctx, original.dir))
}
