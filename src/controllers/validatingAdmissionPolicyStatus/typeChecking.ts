/**
 * Checks the expressions of a validating policy against the types of what it is about (L3, pure): names that no such object has, operators that
 * do not fit. What it finds is a warning, never a refusal: at run time the same expression sees data.
 * Upstream: apiserver/pkg/admission/plugin/policy/validating/typechecking.go (v1.36).
 */
import { AdmissionCompiler } from '#api/cel/admissionCompiler'
import type { ExpressionWarning, ValidatingAdmissionPolicy } from '#api/gen/types/admissionregistration.v1'
import { type Frozen, type GroupVersionKind, type GroupVersionResource, groupVersion, parseGroupVersion } from '#api/machinery/meta'
import type { CelType } from '#cel/types'

/** More types than this are not looked at. */
const maxTypes = 10

export interface TypeSource {
  /** Undefined: no such resource. */
  kindOf(resource: GroupVersionResource): Promise<GroupVersionKind | undefined>
  /** Undefined: its shape is not known. */
  typeOf(kind: GroupVersionKind): Promise<CelType | undefined>
}

/** In the order of the policy's validations. */
export async function checkTypes(policy: Frozen<ValidatingAdmissionPolicy>, source: TypeSource): Promise<ExpressionWarning[]> {
  const checked: { kind: GroupVersionKind; compiler: AdmissionCompiler }[] = []
  const { paramKind, variables = [], validations = [] } = policy.spec
  const params = paramKind && (await source.typeOf({ ...parseGroupVersion(paramKind.apiVersion ?? ''), kind: paramKind.kind ?? '' }))
  for (const kind of await kindsOf(policy, source)) {
    const object = await source.typeOf(kind)
    if (!object) continue
    const compiler = new AdmissionCompiler({ hasParams: paramKind !== undefined, object, params }, true)
    for (const { name, expression } of variables) compiler.addVariable(name, expression)
    checked.push({ kind, compiler })
  }
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
