package classroom

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"example.com/operator-workshop/internal/private"
)

// Load copies images from docker into every node, so that no node has to pull them.
func (k *kind) Load(ctx context.Context, images ...string) error {
	unlock, found, err := k.find(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	switch found.state {
	case kindForeign:
		return k.foreign()
	case kindAbsent, kindHalfMade:
		return fmt.Errorf("there is no kind cluster %s: `%s` creates it", k.cluster, k.options.MakeCommand("up"))
	}
	for _, image := range images {
		if _, err := docker(ctx, "image", "inspect", "--format={{.Id}}", image); err != nil {
			if ctx.Err() != nil {
				return contextError(ctx)
			}
			return fmt.Errorf("docker has no image %s: `make stage-N docker-build IMG=%s` builds the image of stage N, `docker pull %s` gets one from a registry", image, image, image)
		}
	}
	// kind first packs the images into a temporary file, and leaves the file behind if it is killed.
	packed, err := os.MkdirTemp(k.options.Repo.State(), "images-")
	if err != nil {
		return private.Explain(err)
	}
	defer os.RemoveAll(packed)
	loader := k.runner
	loader.env = append(slices.Clone(loader.env), "TMPDIR="+packed)
	err = loader.kind(ctx, append([]string{"load", "docker-image", "--name", k.cluster}, images...)...)
	if errors.Is(err, errInterrupted) {
		return fmt.Errorf("interrupted: load %s again", strings.Join(images, ", "))
	}
	return err
}
