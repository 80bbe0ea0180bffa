/** What requests for pods' certificates and projections of such certificates have in common (L1). Upstream: pkg/apis/core/validation (v1.36). */
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { isQualifiedName } from '#api/machinery/names'
import { annotationsFit, annotationsLimitBytes } from '#api/machinery/objectMeta'
import { faults } from '../rules.ts'

const hourSeconds = 3600
const daySeconds = 24 * hourSeconds

/** How long a certificate of the signer may live: signers of Kubernetes' own names issue for a day at most. */
export function certificateSecondsRange(signerName = ''): { readonly min: number; readonly max: number } {
  const [host = ''] = signerName.split('/')
  const isKubernetes = host === 'kubernetes.io' || host.endsWith('.kubernetes.io')
  return { min: hourSeconds, max: (isKubernetes ? 1 : 91) * daySeconds }
}

/** What a pod's author tells the signer: annotations whose keys have a domain. */
export function validateUserAnnotations(annotations: Readonly<Record<string, string>> | undefined, path: FieldPath): FieldError[] {
  const errors = Object.keys(annotations ?? {}).flatMap((given) => {
    const key = given.toLowerCase()
    if (key === '') return [fieldError.required(path)]
    const wrong = faults(path, key, isQualifiedName(key))
    if (wrong.length > 0 || key.includes('/')) return wrong
    return [fieldError.invalid(path, key, 'must be a domain-prefixed key (such as "acme.io/foo")')]
  })
  return annotationsFit(annotations) ? errors : [...errors, fieldError.tooLong(path, annotationsLimitBytes)]
}
