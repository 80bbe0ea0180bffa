/** IngressClass (L1). Upstream: pkg/registry/networking/ingressclass, pkg/apis/networking/{v1/defaults,validation} (v1.36). */
import type { IngressClass, IngressClassParametersReference } from '#api/gen/types/networking.v1'
import { type FieldError, type FieldPath, fieldError } from '#api/machinery/fieldPath'
import { validateDomainPrefixedPath } from '#api/machinery/formats'
import { isDns1123Subdomain, isPathSegmentName, nameIsDnsLabel } from '#api/machinery/names'
import { validateImmutable } from '#api/machinery/objectMeta'
import { ageColumn, nameColumn, none, text } from '../columns.ts'
import { utf8Length } from '../core/data.ts'
import { defineKind } from '../defineKind.ts'
import { faults } from '../rules.ts'

const maxControllerBytes = 250

export const ingressClass = defineKind<IngressClass>({
  group: 'networking.k8s.io',
  kind: 'IngressClass',
  columns: [
    nameColumn,
    text('Controller', (obj) => obj.spec?.controller ?? ''),
    text('Parameters', ({ spec }) => {
      const parameters = spec?.parameters
      if (!parameters) return none
      return `${parameters.kind}${parameters.apiGroup ? `.${parameters.apiGroup}` : ''}/${parameters.name}`
    }),
    ageColumn,
  ],
  defaults(obj) {
    obj.spec ??= {}
    if (obj.spec.parameters) obj.spec.parameters.scope ??= 'Cluster'
  },
  validate: ({ obj, path }) => specFaults(obj, path.child('spec')),
  validateUpdate: ({ obj, old, path }) => [
    ...validateImmutable(obj.spec.controller, old.spec.controller, path.child('spec', 'controller')),
    ...specFaults(obj, path.child('spec')),
  ],
})

function specFaults({ spec }: IngressClass, path: FieldPath): FieldError[] {
  const at = path.child('controller')
  const errors: FieldError[] = []
  if (utf8Length(spec.controller ?? '') > maxControllerBytes) errors.push(fieldError.tooLong(at, maxControllerBytes))
  errors.push(...validateDomainPrefixedPath(spec.controller ?? '', at))
  return spec.parameters ? [...errors, ...parametersFaults(spec.parameters, path.child('parameters'))] : errors
}

function parametersFaults(parameters: IngressClassParametersReference, path: FieldPath): FieldError[] {
  const { apiGroup, namespace, scope } = parameters
  const errors = apiGroup === undefined ? [] : faults(path.child('apiGroup'), apiGroup, isDns1123Subdomain(apiGroup))
  for (const field of ['kind', 'name'] as const) {
    if (!parameters[field]) errors.push(fieldError.required(path.child(field)))
    else errors.push(...faults(path.child(field), parameters[field], isPathSegmentName(parameters[field])))
  }
  const at = path.child('namespace')
  if (scope === undefined) errors.push(fieldError.required(path.child('scope')))
  else if (scope !== 'Cluster' && scope !== 'Namespace') errors.push(fieldError.notSupported(path.child('scope'), scope, ['Cluster', 'Namespace']))
  else if (scope === 'Cluster') {
    if (namespace !== undefined) errors.push(fieldError.forbidden(at, "`parameters.scope` is set to 'Cluster'"))
  } else if (namespace === undefined) errors.push(fieldError.required(at, "`parameters.scope` is set to 'Namespace'"))
  else errors.push(...faults(at, namespace, nameIsDnsLabel(namespace, false)))
  return errors
}
