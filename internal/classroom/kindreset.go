package classroom

import "context"

// Reset recreates the cluster, because kind has no snapshots. It keeps the node image and the port if the learner chose
// them for the old cluster, unless this command chooses others, and never lowers the number of nodes. If
// .workshop/kubeconfig points to the cluster, it still does so afterwards.
func (k *kind) Reset(ctx context.Context) error {
	if err := requireEngine(ctx); err != nil {
		return err
	}
	nodes, err := containers(ctx, k.cluster)
	if err != nil {
		return err
	}
	k.options.Nodes = max(k.options.Nodes, len(nodes))
	k.keepChoices()
	if err := k.down(ctx); err != nil {
		return err
	}
	return k.Up(ctx)
}

// keepChoices takes the image and the port from the record, unless this command chooses others. Call it before the cluster
// is removed, because that also removes the record.
func (k *kind) keepChoices() {
	made, err := readRecord(k.path(".json"))
	if err != nil {
		return // down checks whose cluster it is
	}
	if k.image == "" {
		k.image = made.Image
	}
	if k.options.Port == 0 {
		k.options.Port = made.Port
	}
}
