/**
 * Validates the options of a list or watch (L3), and sets the default of sendInitialEvents.
 * Upstream: apimachinery/pkg/apis/meta/internalversion/{defaults,validation} (v1.36).
 */
import { type FieldError, FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import { truthy } from '../core/requestInfo.ts'

const matchPath = FieldPath.of('resourceVersionMatch')
const initialPath = FieldPath.of('sendInitialEvents')

/** @throws Status Invalid with every fault of a list's options, in upstream's order. */
export function checkListOptions(query: URLSearchParams): void {
  const match = query.get('resourceVersionMatch') ?? ''
  const resourceVersion = query.get('resourceVersion') ?? ''
  const errors: FieldError[] = []
  if (match !== '') {
    if (resourceVersion === '') errors.push(fieldError.forbidden(matchPath, 'resourceVersionMatch is forbidden unless resourceVersion is provided'))
    if (query.get('continue')) errors.push(fieldError.forbidden(matchPath, 'resourceVersionMatch is forbidden when continue is provided'))
    if (match !== 'Exact' && match !== 'NotOlderThan') errors.push(fieldError.notSupported(matchPath, match, ['Exact', 'NotOlderThan', '']))
    if (match === 'Exact' && resourceVersion === '0') {
      errors.push(fieldError.forbidden(matchPath, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    }
  }
  if (query.has('sendInitialEvents')) errors.push(fieldError.forbidden(initialPath, 'sendInitialEvents is forbidden for list'))
  throwListOptions(errors)
}

/** @throws Status Invalid with every fault of a watch's options, in upstream's order. */
export function checkWatchOptions(query: URLSearchParams): void {
  const match = query.get('resourceVersionMatch') ?? ''
  const saysInitialEvents = query.has('sendInitialEvents')
  const errors: FieldError[] = []
  if (saysInitialEvents && match !== 'NotOlderThan') {
    errors.push(fieldError.forbidden(matchPath, 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'))
  }
  if (match !== '') {
    if (!saysInitialEvents) errors.push(fieldError.forbidden(matchPath, 'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided'))
    if (match !== 'NotOlderThan') errors.push(fieldError.notSupported(matchPath, match, ['NotOlderThan']))
    if (query.get('continue')) errors.push(fieldError.forbidden(matchPath, 'resourceVersionMatch is forbidden when continue is provided'))
  }
  throwListOptions(errors)
}

/** Whether a watch begins with the current state. Without sendInitialEvents, a watch from '' or '0' does, and gets the closing bookmark. */
export function wantsInitialEvents(query: URLSearchParams): boolean {
  const asked = query.get('sendInitialEvents')
  if (asked !== null) return truthy(asked)
  const resourceVersion = query.get('resourceVersion') ?? ''
  return resourceVersion === '' || resourceVersion === '0'
}

function throwListOptions(errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', errors)
}
