/**
 * The approval of APIs in Kubernetes' own groups (L1): an annotation holds the URL of the approval, or the reason why there is none.
 * Upstream: apiextensions-apiserver/pkg/apihelpers/helpers.go (v1.36).
 */
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'

export const approvalAnnotation = 'api-approved.kubernetes.io'

export interface Approval {
  readonly state: 'approved' | 'bypassed' | 'missing' | 'invalid'
  readonly reason: string
}

export function isProtectedGroup(group: string): boolean {
  return /(^|\.)(k8s|kubernetes)\.io$/.test(group)
}

type Annotations = Readonly<Record<string, string>> | undefined

export function approvalOf(annotations: Annotations): Approval {
  const text = annotations?.[approvalAnnotation] ?? ''
  const wanted = `protected groups must have approval annotation ${JSON.stringify(approvalAnnotation)}`
  const see = 'see https://github.com/kubernetes/enhancements/pull/1111'
  if (text === '') return { state: 'missing', reason: `${wanted}, ${see}` }
  if (text.startsWith('unapproved')) return { state: 'bypassed', reason: `not approved: ${JSON.stringify(text)}` }
  if (/^[a-zA-Z][a-zA-Z0-9+.-]*:\/\/[^/\s]+/.test(text)) return { state: 'approved', reason: `approved in ${text}` }
  return { state: 'invalid', reason: `${wanted} with either a URL or a reason starting with "unapproved", ${see}` }
}

/** A definition without an approval annotation cannot be created; an existing one without it stays valid. */
export function approvalFaults(group: string, annotations: Annotations, old?: { readonly annotations: Annotations }): FieldError[] {
  if (!isProtectedGroup(group)) return []
  const { state, reason } = approvalOf(annotations)
  if (state === 'approved' || state === 'bypassed') return []
  if (old && approvalOf(old.annotations).state === state) return []
  const path = FieldPath.of('metadata', 'annotations').key(approvalAnnotation)
  return [state === 'missing' ? fieldError.required(path, reason) : fieldError.invalid(path, annotations?.[approvalAnnotation], reason)]
}
