/**
 * Checks the expressions of a validating policy against the types of what it is about (L3, pure): names that no such object has, operators that
 * do not fit. What it finds is a warning, never a refusal: at run time the same expression sees data.
 * Upstream: apiserver/pkg/admission/plugin/policy/validating/typechecking.go (v1.36).
 */
import { AdmissionCompiler } from '#api/cel/admissionCompiler'
import type { ExpressionWarning, ValidatingAdmissionPolicy } from '#api/gen/types/admissionregistration.v1'
import { type Frozen, type GroupVersionKind, type GroupVersionResource, groupVersion, parseGroupVersion } from '#api/machinery/meta'
import type { Clock } from '#base/clock'
import { compilingInSteps } from '#cel/compilingInSteps'
import type { CelType } from '#cel/types'

/** More types than this are not looked at. */
const maxTypes = 10

export interface TypeSource {
  /** Undefined: no such resource. */
  kindOf(resource: GroupVersionResource): Promise<GroupVersionKind | undefined>
  /** Undefined: its shape is not known. */
  typeOf(kind: GroupVersionKind): Promise<CelType | undefined>
}

/** In the order of the policy's validations. A policy may have thousands of expressions: others get turns of the clock while they are compiled. */
export async function checkTypes(policy: Frozen<ValidatingAdmissionPolicy>, source: TypeSource, clock: Pick<Clock, 'turn'>): Promise<ExpressionWarning[]> {
  const { paramKind } = policy.spec
  const params = paramKind && (await source.typeOf({ ...parseGroupVersion(paramKind.apiVersion ?? ''), kind: paramKind.kind ?? '' }))
  const types: TypeOfKind[] = []
  for (const kind of await kindsOf(policy, source)) {
    const object = await source.typeOf(kind)
    if (object) types.push({ kind, object })
  }
  const steps = compilingInSteps(() => warningsAbout(policy, types, params))
  for (;;) {
    const step = steps.next()
    if (step.done) return step.value
    await clock.turn()
  }
}

interface TypeOfKind {
  readonly kind: GroupVersionKind
  readonly object: CelType
}

function warningsAbout({ spec }: Frozen<ValidatingAdmissionPolicy>, types: readonly TypeOfKind[], params: CelType | undefined): ExpressionWarning[] {
  const { paramKind, variables = [], validations = [] } = spec
  const checked = types.map(({ kind, object }) => {
    const compiler = new AdmissionCompiler({ hasParams: paramKind !== undefined, object, params }, true)
    for (const { name, expression } of variables) compiler.addVariable(name, expression)
    return { kind, compiler }
  })
  const warningsOf = (expression: string, fieldRef: string): ExpressionWarning[] => {
    const texts = checked.flatMap(({ kind, compiler }) => {
      const { fault } = compiler.compile(expression)
      return fault === undefined ? [] : [`${groupVersion(kind)}, Kind=${kind.kind}: ${fault.slice(compilationFailed.length)}\n`]
    })
    return texts.length === 0 ? [] : [{ fieldRef, warning: texts.join('\n') }]
  }
  return validations.flatMap(({ expression, messageExpression }, i) => [
    ...warningsOf(expression, `spec.validations[${i}].expression`),
    ...(messageExpression ? warningsOf(messageExpression, `spec.validations[${i}].messageExpression`) : []),
  ])
}

const compilationFailed = 'compilation failed: '

/** Of rules without wildcards, sorted. */
async function kindsOf({ spec }: Frozen<ValidatingAdmissionPolicy>, source: TypeSource): Promise<GroupVersionKind[]> {
  const kinds = new Map<string, GroupVersionKind>()
  for (const { apiGroups = [], apiVersions = [], resources = [] } of spec.matchConstraints?.resourceRules ?? []) {
    if (apiGroups.some(isWild) || apiVersions.some(isWild)) continue
    const plain = resources.filter((resource) => !isWild(resource) && !resource.includes('/'))
    for (const group of [...apiGroups].sort()) {
      for (const version of [...apiVersions].sort()) {
        for (const resource of [...plain].sort()) {
          const kind = kinds.size < maxTypes ? await source.kindOf({ group, version, resource }) : undefined
          if (kind) kinds.set(JSON.stringify([kind.group, kind.version, kind.kind]), kind)
        }
      }
    }
  }
  return [...kinds].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, kind]) => kind)
}

function isWild(text: string): boolean {
  return text.includes('*')
}
