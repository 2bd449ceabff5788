package behaviours

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/operator-workshop/operatortest"
)

// gadgetOperator describes the reference operator, with or without a flaw.
func gadgetOperator(mutation mutation) operatortest.Operator {
	stock := &warehouse{
		parcels: map[types.NamespacedName]string{}, closed: map[string]bool{},
		begin: map[string]func(string) (func() error, error){},
	}
	return chaoticOperator(mutation, operatortest.Operator{
		CRDs:          []string{"testdata/gadget/gadgets.yaml"},
		Samples:       "testdata/gadget/samples",
		Sample:        "testdata/gadget/samples/gadget.yaml",
		Roles:         []string{"testdata/gadget/role.yaml"},
		AllNamespaces: true,
		Run: func(ctx context.Context, config *rest.Config, options operatortest.RunOptions) error {
			return runFlawed(ctx, config, options, stock, mutation)
		},
		Children: []operatortest.Child{{
			Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"),
			Name: func(gadget *unstructured.Unstructured) string {
				name, _, _ := unstructured.NestedString(gadget.Object, "spec", "configMapName")
				return name
			},
			Drift:   map[string]string{"another size": `{"data":{"size":"99"}}`},
			Foreign: map[string]string{"someone else's key": `{"data":{"theirs":"kept"}}`},
		}},
		MaxWrites: 3, // for the finalizer, the ConfigMap and the status
		Values:    map[string][]any{"spec.configMapName": {"settings", "options", "tuning"}},
		Unmeetable: []operatortest.Unmeetable{{
			Name:  "ConfigMap belongs to someone else",
			Patch: `{"spec":{"configMapName":"taken"}}`,
			Prepare: func(ctx context.Context, writer client.Client, namespace string) error {
				return writer.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "taken"}})
			},
		}},
		External: stock,
		MaxPause: maxPause,
	})
}

// runGadgets runs the reference operator, with or without a flaw; runFlawed adds the flaws that concern the whole
// process.
func runGadgets(ctx context.Context, restConfig *rest.Config, options operatortest.RunOptions, stock *warehouse, mutation mutation) error {
	setup := managerOptions(ctx, options, "gadget-operator")
	if mutation == watchesMetadata {
		setup.Client.Cache.DisableFor = []client.Object{&corev1.ConfigMap{}}
	}
	manager, err := ctrl.NewManager(restConfig, setup)
	if err != nil {
		return err
	}
	kept, err := newHoard(ctx, restConfig)
	if err != nil {
		return err
	}
	reconciler := &gadgetReconciler{
		Client: manager.GetClient(), live: manager.GetAPIReader(), recorder: manager.GetEventRecorder("gadget-operator"), warehouse: stock, flaw: mutation, hoard: kept,
	}
	builder := ctrl.NewControllerManagedBy(manager).Named("gadget").For(newGadget(), watchedChanges(mutation)...).WithOptions(pace(mutation))
	if watchesChildren(mutation) {
		builder = reconciler.watchConfigMaps(builder)
	}
	if mutation == servesWidgets {
		if err := reconciler.serveWidgets(manager); err != nil {
			return err
		}
	}
	if mutation == delegates {
		builder = builder.Owns(newWidget())
	}
	if condition, found := auditors[mutation]; found {
		if err := reconciler.audit(manager, condition); err != nil {
			return err
		}
	}
	if watchesDeployments(mutation) {
		builder = builder.Owns(&appsv1.Deployment{})
	}
	if err := builder.Complete(careless(reconciler)); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// managerOptions translates the kit's options into those of a manager. With leader election, name is the name of the
// Lease.
func managerOptions(ctx context.Context, options operatortest.RunOptions, name string) ctrl.Options {
	unique := true // controller-runtime allows only one controller of each name in a process; here there are many
	setup := ctrl.Options{
		Logger:     ctrl.LoggerFrom(ctx),
		Metrics:    server.Options{BindAddress: "0"},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{options.Namespace: {}}},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller: config.Controller{SkipNameValidation: &unique},
	}
	if options.Resync > 0 {
		setup.Cache.SyncPeriod = &options.Resync
	}
	if election := options.LeaderElection; election != nil {
		setup.LeaderElection, setup.LeaderElectionID = true, name
		setup.LeaderElectionNamespace = election.Namespace
		setup.LeaseDuration, setup.RenewDeadline, setup.RetryPeriod = &election.LeaseDuration, &election.RenewDeadline, &election.RetryPeriod
		setup.LeaderElectionReleaseOnCancel = true
	}
	return setup
}

// waitingFor returns requests for the gadgets that need a ConfigMap with the name of configMap, whatever owns
// configMap. It returns none if it can't list gadgets, or with the flaw missesRemoval.
func (r *gadgetReconciler) waitingFor(ctx context.Context, configMap client.Object) []reconcile.Request {
	gadgets := &unstructured.UnstructuredList{}
	gadgets.SetGroupVersionKind(gadgetKind.GroupVersion().WithKind("GadgetList"))
	if r.flaw == missesRemoval || r.List(ctx, gadgets, client.InNamespace(configMap.GetNamespace())) != nil {
		return nil
	}
	var requests []reconcile.Request
	for _, gadget := range gadgets.Items {
		if name, _, _ := unstructured.NestedString(gadget.Object, "spec", "configMapName"); name == configMap.GetName() || besideName(&gadget) == configMap.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&gadget)})
		}
	}
	return requests
}

// warehouse is a system outside Kubernetes: it has a parcel for each gadget.
type warehouse struct {
	mu      sync.Mutex
	parcels map[types.NamespacedName]string
	closed  map[string]bool
	// begin contains, by namespace, the function to call before each change for a gadget in that namespace. The function
	// returns the one to call after the change, or an error that prevents the change.
	begin map[string]func(call string) (end func() error, err error)
}

var errClosed = errors.New("the warehouse is closed")

func (w *warehouse) store(gadget *unstructured.Unstructured) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed[gadget.GetNamespace()] {
		return errClosed
	}
	key := client.ObjectKeyFromObject(gadget)
	size, _, _ := unstructured.NestedInt64(gadget.Object, "spec", "size")
	parcel := fmt.Sprintf("size %d", size)
	if w.parcels[key] == parcel {
		return nil
	}
	return w.change(key, "store a parcel", func() { w.parcels[key] = parcel })
}

// change makes a change to the warehouse. The kit can interfere right before and right after it. An error before it
// prevents the change.
func (w *warehouse) change(key types.NamespacedName, call string, effect func()) error {
	begin, interrupted := w.begin[key.Namespace]
	if !interrupted {
		effect()
		return nil
	}
	end, err := begin(call)
	if err != nil {
		return err
	}
	effect()
	return end()
}

func (w *warehouse) remove(gadget *unstructured.Unstructured, mutation mutation) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed[gadget.GetNamespace()] {
		return errClosed
	}
	key := client.ObjectKeyFromObject(gadget)
	if _, stored := w.parcels[key]; !stored || mutation == leaksParcel {
		return nil
	}
	return w.change(key, "remove a parcel", func() {
		delete(w.parcels, key)
		delete(w.parcels, insuranceOf(key))
	})
}

// Snapshot implements External.
func (w *warehouse) Snapshot(_ context.Context, namespace string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []string
	for key, parcel := range w.parcels {
		if key.Namespace == namespace {
			found = append(found, key.Name+": "+parcel+"\n")
		}
	}
	slices.Sort(found)
	return strings.Join(found, ""), nil
}

// Fail implements External.
func (w *warehouse) Fail(namespace string) (restore func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed[namespace] = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.closed, namespace)
	}
}

// Interrupt implements Interrupter.
func (w *warehouse) Interrupt(namespace string, begin func(string) (func() error, error)) (restore func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin[namespace] = begin
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.begin, namespace)
	}
}
