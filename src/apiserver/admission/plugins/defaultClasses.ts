/**
 * DefaultStorageClass and DefaultIngressClass (L3): an object that names no class gets the cluster's default; of several the newest wins.
 * Upstream: plugin/pkg/admission/storage/storageclass/setdefault, plugin/pkg/admission/network/defaultingressclass (v1.36).
 */
import type { PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { Ingress } from '#api/gen/types/networking.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import type { AdmissionPlugin, ObjectReader } from '../admission.ts'
import { isResource } from '../attributes.ts'

/** Gives a claim that names no class the newest of the default ones. */
export function defaultStorageClass(reader: ObjectReader): AdmissionPlugin {
  return {
    name: 'DefaultStorageClass',
    handles: (operation) => operation === 'CREATE',
    admit(attributes) {
      if (!isResource(attributes, '', 'persistentvolumeclaims')) return
      const claim = attributes.object as PersistentVolumeClaim
      const named = claim.spec?.storageClassName !== undefined || claim.metadata.annotations?.['volume.beta.kubernetes.io/storage-class'] !== undefined
      if (!claim.spec || named) return
      const annotations = ['storageclass.kubernetes.io/is-default-class', 'storageclass.beta.kubernetes.io/is-default-class']
      const found = newestDefault(reader.list({ group: 'storage.k8s.io', resource: 'storageclasses' }), annotations)
      if (found) claim.spec.storageClassName = found
    },
  }
}

/** Gives an Ingress that names no class the newest of the default ones. */
export function defaultIngressClass(reader: ObjectReader): AdmissionPlugin {
  return {
    name: 'DefaultIngressClass',
    handles: (operation) => operation === 'CREATE',
    admit(attributes) {
      if (!isResource(attributes, 'networking.k8s.io', 'ingresses')) return
      const ingress = attributes.object as Ingress
      const named = ingress.spec?.ingressClassName !== undefined || ingress.metadata.annotations?.['kubernetes.io/ingress.class'] !== undefined
      if (!ingress.spec || named) return
      const found = newestDefault(reader.list({ group: 'networking.k8s.io', resource: 'ingressclasses' }), ['ingressclass.kubernetes.io/is-default-class'])
      if (found) ingress.spec.ingressClassName = found
    },
  }
}

function newestDefault(classes: readonly Frozen<KubeObject>[], annotations: readonly string[]): string | undefined {
  const defaults = classes.filter((one) => annotations.some((annotation) => one.metadata.annotations?.[annotation] === 'true'))
  const created = (one: Frozen<KubeObject>) => one.metadata.creationTimestamp ?? ''
  const order = (a: Frozen<KubeObject>, b: Frozen<KubeObject>) =>
    created(a) === created(b) ? ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1) : created(a) > created(b) ? -1 : 1
  return defaults.sort(order)[0]?.metadata.name
}
