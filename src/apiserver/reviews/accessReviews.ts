/**
 * SelfSubjectAccessReview, SubjectAccessReview, LocalSubjectAccessReview and SelfSubjectRulesReview (L3), answered by the authorizers of
 * ordinary requests. Upstream: pkg/registry/authorization (v1.36).
 */
import type {
  FieldSelectorAttributes,
  LabelSelectorAttributes,
  LocalSubjectAccessReview,
  NonResourceAttributes,
  ResourceAttributes,
  SelfSubjectAccessReview,
  SelfSubjectRulesReview,
  SubjectAccessReview,
  SubjectAccessReviewStatus,
} from '#api/gen/types/authorization.v1'
import { type FieldError, FieldPath, fieldError, invalid } from '#api/machinery/fieldPath'
import { badRequest } from '#api/machinery/status'
import type { AuthorizationAttributes, Authorizer } from '../authz/authorizer.ts'
import { authorize, rulesFor } from '../authz/union.ts'
import type { ComputedResource } from '../core/computedResource.ts'
import type { UserInfo } from '../core/request.ts'
import { evaluationError, fieldTermsOf, labelRequirementsOf } from './selectors.ts'

const group = 'authorization.k8s.io'
const version = 'v1'

interface Asked {
  readonly resourceAttributes?: ResourceAttributes | undefined
  readonly nonResourceAttributes?: NonResourceAttributes | undefined
}

export function accessReviews(authorizers: readonly Authorizer[]) {
  const answer = async (user: UserInfo, asked: Asked): Promise<SubjectAccessReviewStatus> => {
    const { decision, reason, error } = await authorize(authorizers, attributesOf(user, asked))
    const wrong = evaluationError(error, asked.resourceAttributes)
    return {
      allowed: decision === 'allow',
      ...(decision === 'deny' ? { denied: true } : {}),
      ...(reason ? { reason } : {}),
      ...(wrong ? { evaluationError: wrong } : {}),
    }
  }
  const selfSubjectAccessReview: ComputedResource<SelfSubjectAccessReview> = {
    group,
    version,
    resource: 'selfsubjectaccessreviews',
    async create({ object, user }) {
      throwIfInvalid('SelfSubjectAccessReview', attributeFaults(object.spec))
      return { ...object, status: await answer(user, object.spec) }
    },
  }
  const subjectAccessReview: ComputedResource<SubjectAccessReview> = {
    group,
    version,
    resource: 'subjectaccessreviews',
    async create({ object }) {
      throwIfInvalid('SubjectAccessReview', [...attributeFaults(object.spec), ...subjectFaults(object)])
      return { ...object, status: await answer(subjectOf(object), object.spec) }
    },
  }
  const localSubjectAccessReview: ComputedResource<LocalSubjectAccessReview> = {
    group,
    version,
    resource: 'localsubjectaccessreviews',
    async create({ object, namespace }) {
      throwIfInvalid('LocalSubjectAccessReview', [...attributeFaults(object.spec), ...subjectFaults(object), ...localFaults(object.spec, namespace)])
      return { ...object, status: await answer(subjectOf(object), object.spec) }
    },
  }
  return [selfSubjectAccessReview, subjectAccessReview, localSubjectAccessReview, selfSubjectRulesReview(authorizers)] as unknown as ComputedResource[]
}

function selfSubjectRulesReview(authorizers: readonly Authorizer[]): ComputedResource<SelfSubjectRulesReview> {
  return {
    group,
    version,
    resource: 'selfsubjectrulesreviews',
    create({ object, user }) {
      const namespace = object.spec.namespace ?? ''
      if (namespace === '') throw badRequest('no namespace on request')
      const { rules, incomplete, error } = rulesFor(authorizers, user, namespace)
      const copy = (values: readonly string[] | undefined) => (values?.length ? [...values] : undefined)
      return {
        ...object,
        status: {
          resourceRules: rules
            .filter((rule) => rule.resources?.length)
            .map((rule) => ({
              verbs: [...rule.verbs],
              apiGroups: copy(rule.apiGroups),
              resources: copy(rule.resources),
              resourceNames: copy(rule.resourceNames),
            })),
          nonResourceRules: rules
            .filter((rule) => rule.nonResourceURLs?.length)
            .map((rule) => ({ verbs: [...rule.verbs], nonResourceURLs: copy(rule.nonResourceURLs) })),
          incomplete,
          ...(error === undefined ? {} : { evaluationError: error }),
        },
      }
    },
  }
}

function attributesOf(user: UserInfo, { resourceAttributes: resource, nonResourceAttributes: other }: Asked): AuthorizationAttributes {
  return {
    user,
    verb: resource?.verb ?? other?.verb ?? '',
    isResourceRequest: resource !== undefined,
    path: other?.path ?? '',
    namespace: resource?.namespace ?? '',
    apiGroup: resource?.group ?? '',
    apiVersion: resource ? resource.version || '*' : '',
    resource: resource?.resource ?? '',
    subresource: resource?.subresource ?? '',
    name: resource?.name ?? '',
    fieldSelector: resource?.fieldSelector && fieldTermsOf(resource.fieldSelector).terms,
    labelSelector: resource?.labelSelector && labelRequirementsOf(resource.labelSelector).terms,
  }
}

function subjectOf({ spec }: SubjectAccessReview | LocalSubjectAccessReview): UserInfo {
  return { name: spec.user ?? '', uid: spec.uid, groups: spec.groups ?? [], extra: spec.extra }
}

const spec = FieldPath.of('spec')

function attributeFaults({ resourceAttributes, nonResourceAttributes }: Asked): FieldError[] {
  const errors: FieldError[] = []
  if (resourceAttributes && nonResourceAttributes)
    errors.push(fieldError.invalid(spec.child('nonResourceAttributes'), nonResourceAttributes, 'cannot be specified in combination with resourceAttributes'))
  if (!resourceAttributes && !nonResourceAttributes)
    errors.push(fieldError.invalid(spec.child('resourceAttributes'), null, 'exactly one of nonResourceAttributes or resourceAttributes must be specified'))
  const at = spec.child('resourceAttributes')
  for (const field of ['fieldSelector', 'labelSelector'] as const)
    if (resourceAttributes?.[field]) errors.push(...selectorFaults(resourceAttributes[field], at.child(field)))
  return errors
}

/** A selector is text or requirements, never both; unknown operators are allowed, as they may be future ones. */
function selectorFaults({ rawSelector, requirements = [] }: FieldSelectorAttributes | LabelSelectorAttributes, path: FieldPath): FieldError[] {
  const errors: FieldError[] = []
  if (rawSelector && requirements.length > 0)
    errors.push(fieldError.invalid(path.child('rawSelector'), rawSelector, 'may not specified at the same time as requirements'))
  if (!rawSelector && requirements.length === 0)
    errors.push(fieldError.required(path.child('requirements'), `when ${path} is specified, requirements or rawSelector is required`))
  for (const [i, { key, operator, values = [] }] of requirements.entries()) {
    const at = path.child('requirements').index(i)
    if (['In', 'NotIn'].includes(operator) && values.length === 0)
      errors.push(fieldError.required(at.child('values'), "must be specified when `operator` is 'In' or 'NotIn'"))
    if (['Exists', 'DoesNotExist'].includes(operator) && values.length > 0)
      errors.push(fieldError.forbidden(at.child('values'), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    if (!key) errors.push(fieldError.required(at.child('key'), 'must be specified'))
  }
  return errors
}

function localFaults({ resourceAttributes, nonResourceAttributes }: Asked, namespace: string): FieldError[] {
  const asked = resourceAttributes?.namespace ?? ''
  const errors: FieldError[] = []
  if (resourceAttributes && asked !== namespace)
    errors.push(fieldError.invalid(spec.child('resourceAttributes', 'namespace'), asked, 'must match metadata.namespace'))
  if (nonResourceAttributes) errors.push(fieldError.invalid(spec.child('nonResourceAttributes'), nonResourceAttributes, 'disallowed on this kind of request'))
  return errors
}

function subjectFaults({ spec: { user, groups } }: SubjectAccessReview | LocalSubjectAccessReview): FieldError[] {
  return user || groups?.length ? [] : [fieldError.invalid(spec.child('user'), '', 'at least one of user or group must be specified')]
}

function throwIfInvalid(kind: string, faults: readonly FieldError[]): void {
  if (faults.length > 0) throw invalid({ group, kind }, '', faults)
}
