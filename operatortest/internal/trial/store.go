package trial

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"example.com/operator-workshop/operatortest/testcluster"
)

// watchTimeout is longer than any suite takes, so that no watch is restarted while the behaviour "shutdown" counts
// goroutines.
const watchTimeout = int64(6 * time.Hour / time.Second)

// store contains copies of all objects of some kinds. One watch per kind serves all trials of all operators on a
// cluster. The store may lag behind the API server: what it shows is a reason to ask the API server, not a result.
type store struct {
	cluster *testcluster.Cluster
	client  dynamic.Interface
	// ctx is cancelled when the last user closes the store.
	ctx    context.Context
	cancel context.CancelFunc
	// users is guarded by stores.mu.
	users int

	mu        sync.Mutex
	informers map[schema.GroupVersionKind]cache.SharedIndexInformer
	// changes counts the changes seen in each namespace.
	changes map[string]int
	// followed contains, for each namespace passed to follow, the versions seen since that call: those of the objects in
	// the namespace, and of the cluster-scoped objects whose names contain the namespace's name. The versions of each kind
	// are in the order in which they were written.
	followed map[string][]version
}

// version is a state of an object.
type version struct {
	*unstructured.Unstructured
	// gone means that the object was deleted, so this is its last version.
	gone bool
}

// stores are the open stores of this process. They are shared: otherwise the kit would, for each operator, list what
// all others have left behind, and decode another copy of every event.
var stores = struct {
	mu        sync.Mutex
	byCluster map[*testcluster.Cluster]*store
}{byCluster: map[*testcluster.Cluster]*store{}}

// openStore returns the cluster's store once it contains all existing objects of some kinds. The caller must close it.
func openStore(ctx context.Context, cluster *testcluster.Cluster, kinds []schema.GroupVersionKind) (*store, error) {
	opened, err := enterStore(ctx, cluster)
	if err != nil {
		return nil, err
	}
	for _, kind := range kinds {
		if err := opened.watch(ctx, kind); err != nil {
			opened.close()
			return nil, err
		}
	}
	return opened, nil
}

func enterStore(ctx context.Context, cluster *testcluster.Cluster) (*store, error) {
	stores.mu.Lock()
	defer stores.mu.Unlock()
	opened, found := stores.byCluster[cluster]
	if !found {
		client, err := dynamic.NewForConfig(cluster.Config)
		if err != nil {
			return nil, fmt.Errorf("make a client to watch with: %w", err)
		}
		opened = &store{
			cluster: cluster, client: client, informers: map[schema.GroupVersionKind]cache.SharedIndexInformer{},
			changes: map[string]int{}, followed: map[string][]version{},
		}
		opened.ctx, opened.cancel = context.WithCancel(context.WithoutCancel(ctx))
		stores.byCluster[cluster] = opened
	}
	opened.users++
	return opened, nil
}

// close ends the watches unless someone else is using the store.
func (s *store) close() {
	stores.mu.Lock()
	defer stores.mu.Unlock()
	if s.users--; s.users == 0 {
		s.cancel()
		delete(stores.byCluster, s.cluster)
	}
}

// watch makes the store watch a kind, and returns once the store contains all existing objects of that kind.
func (s *store) watch(ctx context.Context, kind schema.GroupVersionKind) error {
	informer, err := s.informer(kind)
	if err != nil {
		return err
	}
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("wait for the first list of every %s: %w", kind.Kind, ctx.Err())
	}
	return nil
}

// informer returns the informer of a kind. It starts one if there is none yet.
func (s *store) informer(kind schema.GroupVersionKind) (cache.SharedIndexInformer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, found := s.informers[kind]; found {
		return known, nil
	}
	mapping, err := s.cluster.Admin.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("find the resource of kind %s: %w", kind.Kind, err)
	}
	long := func(options *metav1.ListOptions) { options.TimeoutSeconds = new(watchTimeout) }
	informer := dynamicinformer.NewFilteredDynamicInformer(s.client, mapping.Resource, metav1.NamespaceAll, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, long).Informer()
	count := func(object any, gone bool) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			namespace, _, _ := cache.SplitMetaNamespaceKey(key)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.changes[namespace]++
			s.note(namespace, object, gone)
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { count(object, false) }, UpdateFunc: func(_, object any) { count(object, false) },
		DeleteFunc: func(object any) { count(object, true) },
	})
	if err != nil {
		return nil, fmt.Errorf("watch every %s: %w", kind.Kind, err)
	}
	s.informers[kind] = informer
	go informer.RunWithContext(s.ctx)
	return informer, nil
}

// watched returns the informer of a kind, or nil if the kind is not watched.
func (s *store) watched(kind schema.GroupVersionKind) cache.SharedIndexInformer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.informers[kind]
}

// version returns a number that increases with each change that the store sees in a namespace.
func (s *store) version(namespace string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes[namespace] + s.changes[metav1.NamespaceNone] // a cluster-scoped object may belong to any trial
}

// note records a version of an object for the followed namespace to which the object belongs. The name of a
// cluster-scoped object contains the name of its trial's namespace.
func (s *store) note(namespace string, object any, gone bool) {
	seen, isObject := object.(*unstructured.Unstructured)
	if !isObject {
		return
	}
	for followed, versions := range s.followed {
		if namespace == followed || namespace == metav1.NamespaceNone && strings.Contains(seen.GetName(), followed) {
			s.followed[followed] = append(versions, version{seen, gone})
		}
	}
}

// follow starts to record the versions of all objects of the watched kinds in a namespace.
func (s *store) follow(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.followed[namespace] = []version{}
}

// unfollow stops recording a namespace, and deletes the versions recorded so far.
func (s *store) unfollow(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.followed, namespace)
}

// versions returns the versions seen since follow. The caller must not change them.
func (s *store) versions(namespace string) []version {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.followed[namespace])
}

// get returns a copy of an object, or nil if there is none. The result watched is false for a kind that is not
// watched.
func (s *store) get(kind schema.GroupVersionKind, namespace, name string) (object *unstructured.Unstructured, watched bool) {
	informer := s.watched(kind)
	if informer == nil {
		return nil, false
	}
	found, exists, err := informer.GetStore().GetByKey(cache.NewObjectName(namespace, name).String())
	if err != nil || !exists {
		return nil, true
	}
	return found.(*unstructured.Unstructured).DeepCopy(), true
}

// list returns copies of all objects of a kind in a namespace. The result watched is false for a kind that is not
// watched.
func (s *store) list(kind schema.GroupVersionKind, namespace string) (objects []*unstructured.Unstructured, watched bool) {
	informer := s.watched(kind)
	if informer == nil {
		return nil, false
	}
	found, err := informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil, false
	}
	for _, object := range found {
		objects = append(objects, object.(*unstructured.Unstructured).DeepCopy())
	}
	return objects, true
}
