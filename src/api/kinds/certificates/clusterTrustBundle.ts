/**
 * ClusterTrustBundle (L1): trust anchors for the whole cluster, of a signer or of none. The API server reads the certificates in its
 * `kinds/trustBundles.ts`. Upstream: pkg/registry/certificates/clustertrustbundle, pkg/apis/certificates/validation (v1.36).
 */
import type { ClusterTrustBundle } from '#api/gen/types/certificates.v1beta1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { nameIsDnsSubdomain } from '#api/machinery/names'
import { validateImmutable } from '#api/machinery/objectMeta'
import { nameColumn, none, text } from '../columns.ts'
import { utf8Length } from '../core/data.ts'
import { type CreateInput, defineKind } from '../defineKind.ts'
import { faults } from '../rules.ts'
import { validateSignerName } from './signerName.ts'

const maxBundleBytes = 1024 * 1024

export const clusterTrustBundle = defineKind<ClusterTrustBundle>({
  group: 'certificates.k8s.io',
  kind: 'ClusterTrustBundle',
  generation: false,
  allowUnconditionalUpdate: false,
  // What a name may be depends on the signer: `validate` checks it.
  validateName: () => [],
  columns: [nameColumn, text('SignerName', (obj) => obj.spec?.signerName || none)],
  selectableFields: { 'spec.signerName': (obj) => obj.spec?.signerName ?? '' },
  validate: bundleFaults,
  validateUpdate: (input) => [
    ...bundleFaults(input),
    ...validateImmutable(input.obj.spec?.signerName, input.old.spec?.signerName, input.path.child('spec', 'signerName')),
  ],
})

function bundleFaults({ obj, path }: CreateInput<ClusterTrustBundle>): FieldError[] {
  const { signerName = '', trustBundle = '' } = obj.spec ?? {}
  const { name, generateName } = obj.metadata
  const errors = generateName ? nameFaults(generateName, true, signerName, path.child('metadata', 'generateName')) : []
  if (name) errors.push(...nameFaults(name, false, signerName, path.child('metadata', 'name')))
  if (signerName !== '') errors.push(...validateSignerName(signerName, path.child('spec', 'signerName')))
  if (utf8Length(trustBundle) > maxBundleBytes) errors.push(fieldError.tooLong(path.child('spec', 'trustBundle'), maxBundleBytes))
  return errors
}

/** A bundle of a signer is named after it, with colons for slashes: `example.com:signer:name`. */
function nameFaults(name: string, isPrefix: boolean, signerName: string, path: FieldPath): FieldError[] {
  const prefix = signerName === '' ? '' : `${signerName.replaceAll('/', ':')}:`
  if (prefix === '' && name.includes(':')) return [fieldError.invalid(path, name, 'ClusterTrustBundle without signer name must not have ":" in its name')]
  if (!name.startsWith(prefix)) return [fieldError.invalid(path, name, `ClusterTrustBundle for signerName ${signerName} must be named with prefix ${prefix}`)]
  return faults(path, name, nameIsDnsSubdomain(name.slice(prefix.length), isPrefix))
}
