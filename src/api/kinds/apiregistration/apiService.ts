/** APIService (L1). Upstream: kube-aggregator/pkg/registry/apiservice, pkg/apis/apiregistration/validation (v1.36). */
import type { APIService } from '#api/gen/types/apiregistration.v1'
import { findCondition } from '#api/machinery/conditions'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import type { Frozen } from '#api/machinery/meta'
import { isDns1035Label, isDns1123Subdomain, isPortNumber, nameIsPathSegment } from '#api/machinery/names'
import { formatTime } from '#base/time'
import { ageColumn, nameColumn, text } from '../columns.ts'
import { defineKind } from '../defineKind.ts'
import { dropStatus, keepStatus, resetMetadata, statusStrategy } from '../rules.ts'

const conditionStatuses = ['True', 'False', 'Unknown']

export const apiService = defineKind<APIService>({
  group: 'apiregistration.k8s.io',
  kind: 'APIService',
  generation: false,
  allowUnconditionalUpdate: false,
  // 'v1.' is the core group's.
  validateName: nameIsPathSegment,
  columns: [
    nameColumn,
    text('Service', (obj) => (obj.spec?.service ? `${obj.spec.service.namespace}/${obj.spec.service.name}` : 'Local')),
    text('Available', availableText),
    ageColumn,
  ],
  defaults(obj) {
    obj.spec ??= {} as APIService['spec']
    obj.status ??= {}
    if (obj.spec.service) obj.spec.service.port ??= 443
  },
  prepareForCreate({ obj, context }) {
    dropStatus(obj)
    // What this very server answers is there as soon as it is said to be.
    if (!obj.spec.service) {
      const lastTransitionTime = formatTime(context.nowMs)
      obj.status.conditions = [{ type: 'Available', status: 'True', lastTransitionTime, reason: 'Local', message: 'Local APIServices are always available' }]
    }
  },
  prepareForUpdate: keepStatus,
  validate: ({ obj, path }) => specFaults(obj, path),
  validateUpdate: ({ obj, path }) => specFaults(obj, path),
  status: statusStrategy<APIService>({
    keepMetadata: resetMetadata,
    validateUpdate: ({ obj, path }) => conditionFaults(obj, path.child('status', 'conditions')),
  }),
})

function availableText(obj: Frozen<APIService>): string {
  const condition = findCondition(obj.status?.conditions, 'Available')
  if (!condition) return 'Unknown'
  return condition.status === 'True' ? 'True' : `${condition.status}${condition.reason ? ` (${condition.reason})` : ''}`
}

function specFaults({ spec, metadata }: APIService, root: FieldPath): FieldError[] {
  const path = root.child('spec')
  const errors: FieldError[] = []
  const wanted = `${spec.version ?? ''}.${spec.group ?? ''}`
  if (metadata.name !== wanted)
    errors.push(fieldError.invalid(root.child('metadata', 'name'), metadata.name, `must be \`spec.version+"."+spec.group\`: ${JSON.stringify(wanted)}`))
  if (!spec.group) {
    if (spec.version !== 'v1') errors.push(fieldError.required(path.child('group'), 'only v1 may have an empty group and it better be legacy kube'))
  } else errors.push(...isDns1123Subdomain(spec.group).map((fault) => fieldError.invalid(path.child('group'), spec.group, fault)))
  errors.push(...isDns1035Label(spec.version ?? '').map((fault) => fieldError.invalid(path.child('version'), spec.version ?? '', fault)))
  if (!(spec.groupPriorityMinimum > 0 && spec.groupPriorityMinimum <= 20_000))
    errors.push(fieldError.invalid(path.child('groupPriorityMinimum'), spec.groupPriorityMinimum, 'must be positive and less than 20000'))
  if (!(spec.versionPriority > 0 && spec.versionPriority <= 1000))
    errors.push(fieldError.invalid(path.child('versionPriority'), spec.versionPriority, 'must be positive and less than 1000'))
  if (!spec.service) {
    if (spec.caBundle)
      errors.push(fieldError.invalid(path.child('caBundle'), `${decodedLength(spec.caBundle)} bytes`, 'local APIServices may not have a caBundle'))
    if (spec.insecureSkipTLSVerify)
      errors.push(fieldError.invalid(path.child('insecureSkipTLSVerify'), true, 'local APIServices may not have insecureSkipTLSVerify'))
    return errors
  }
  for (const field of ['namespace', 'name'] as const) if (!spec.service[field]) errors.push(fieldError.required(path.child('service', field)))
  const { port = 0 } = spec.service
  const portFaults = isPortNumber(port)
  if (portFaults.length > 0) errors.push(fieldError.invalid(path.child('service', 'port'), port, `port is not valid: ${portFaults.join(', ')}`))
  if (spec.insecureSkipTLSVerify && spec.caBundle)
    errors.push(fieldError.invalid(path.child('insecureSkipTLSVerify'), true, 'may not be true if caBundle is present'))
  return errors
}

function conditionFaults({ status }: APIService, path: FieldPath): FieldError[] {
  return (status.conditions ?? []).flatMap((condition, i) =>
    conditionStatuses.includes(condition.status) ? [] : [fieldError.notSupported(path.index(i).child('status'), condition.status, conditionStatuses)],
  )
}

/** How many bytes a base64 text holds. */
function decodedLength(base64: string): number {
  let end = base64.length
  while (base64[end - 1] === '=') end--
  return Math.floor((end * 3) / 4)
}
