/**
 * DefaultStorageClass and DefaultIngressClass (L3): an object that names no class gets the cluster's default; of several the newest wins.
 * Upstream: plugin/pkg/admission/storage/storageclass/setdefault, plugin/pkg/admission/network/defaultingressclass (v1.36).
 */
import type { PersistentVolumeClaim } from '#api/gen/types/core.v1'
import type { Ingress } from '#api/gen/types/networking.v1'
import { defaultStorageClassOf, namesStorageClass, newestDefault } from '#api/helpers/volumes'
import type { ObjectReader } from '../../core/objectReader.ts'
import type { AdmissionPlugin } from '../admission.ts'
import { isResource } from '../attributes.ts'

/** Gives a claim that names no class the newest of the default ones. */
export function defaultStorageClass(reader: ObjectReader): AdmissionPlugin {
  return {
    name: 'DefaultStorageClass',
    handles: (operation) => operation === 'CREATE',
    admit(attributes) {
      if (!isResource(attributes, '', 'persistentvolumeclaims')) return
      const claim = attributes.object as PersistentVolumeClaim
      if (!claim.spec || namesStorageClass(claim)) return
      const found = defaultStorageClassOf(reader.list({ group: 'storage.k8s.io', resource: 'storageclasses' }))?.metadata.name
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
      const classes = reader.list({ group: 'networking.k8s.io', resource: 'ingressclasses' })
      const found = newestDefault(classes, ['ingressclass.kubernetes.io/is-default-class'])?.metadata.name
      if (found) ingress.spec.ingressClassName = found
    },
  }
}
