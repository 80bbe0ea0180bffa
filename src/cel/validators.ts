/**
 * Faults that types do not show (L1, pure): literals that their function will refuse, and literals of mixed types.
 * Upstream: cel-go cel/validator.go (v0.26), as Kubernetes enables it since 1.29.
 */
import { bareMap } from '#base/bareMap'
import { greatest } from '#base/extremes'
import type { CheckedExpression, Issue } from './environment.ts'
import { patternSize } from './patternSize.ts'
import { compileRegularExpression, maxSizePerEvaluation } from './regularExpression.ts'
import type { Expression } from './syntax/ast.ts'
import { conditional } from './syntax/operators.ts'
import { parseDuration, parseTimestamp } from './time.ts'
import type { CelType } from './types.ts'
import { dynType, formatType, isOptional, typesEqual } from './types.ts'
import { EvaluationError } from './values.ts'

/** The literals that a function accepts as its first argument. */
const literalChecks: Readonly<Record<string, (text: string) => unknown>> = bareMap({
  duration: parseDuration,
  timestamp: parseTimestamp,
  matches: compileRegularExpression,
})

function accepts(check: (text: string) => unknown, text: string): boolean {
  try {
    return check(text) !== undefined
  } catch (error) {
    if (error instanceof EvaluationError) return false
    throw error
  }
}

/** The parts of an expression, in the order of the text. */
export function children(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case 'select':
      return [expression.operand]
    case 'call':
      return expression.target ? [expression.target, ...expression.args] : expression.args
    case 'list':
      return expression.elements
    case 'map':
      return expression.entries.flatMap(({ key, value }) => [key, value])
    case 'struct':
      return expression.fields.map(({ value }) => value)
    case 'comprehension':
      return [expression.iterRange, expression.accuInit, expression.loopCondition, expression.loopStep, expression.result]
    default:
      return []
  }
}

/** All faults of a checked expression. */
export function validate({ expression, types }: CheckedExpression): Issue[] {
  const issues: Issue[] = []
  const visit = (node: Expression): void => {
    if (node.kind === 'call') checkLiteral(node.function, node.args[0], issues)
    if (node.kind === 'list' || node.kind === 'map') checkHomogeneous(node, types, issues)
    for (const child of children(node)) visit(child)
  }
  visit(expression)
  const size = literalPatternSize(expression)
  if (size > maxSizePerEvaluation)
    issues.push({ message: `the patterns are too large: ${size} instructions, and an evaluation may use ${maxSizePerEvaluation}`, offset: expression.offset })
  return issues
}

/** Functions whose last argument is a pattern; the last two are of Kubernetes' library. */
const patternFunctions: ReadonlySet<string> = new Set(['matches', 'find', 'findAll'])

/** How many instructions the literal patterns have that one evaluation can use. It uses one branch of a conditional. */
function literalPatternSize(node: Expression): number {
  const parts = children(node)
  if (node.kind !== 'call') return parts.reduce((sum, part) => sum + literalPatternSize(part), 0)
  if (node.function === conditional) {
    const [condition = 0, ...alternatives] = parts.map(literalPatternSize)
    return condition + greatest(alternatives, 0)
  }
  const pattern = patternFunctions.has(node.function) ? node.args[node.target ? 0 : 1] : undefined
  const own = pattern?.kind === 'literal' && typeof pattern.value === 'string' ? patternSize(pattern.value) : 0
  return parts.reduce((sum, part) => sum + literalPatternSize(part), own)
}

function checkLiteral(name: string, argument: Expression | undefined, issues: Issue[]): void {
  const check = literalChecks[name]
  if (!check || argument?.kind !== 'literal' || typeof argument.value !== 'string') return
  if (!accepts(check, argument.value)) issues.push({ message: `invalid ${name} argument`, offset: argument.offset })
}

function checkHomogeneous(node: Expression & { kind: 'list' | 'map' }, types: CheckedExpression['types'], issues: Issue[]): void {
  const typed = (part: Expression, optional: boolean): { part: Expression; type: CelType } => {
    const type = types.get(part.id) ?? dynType
    return { part, type: optional && isOptional(type) ? type.parameters[0]! : type }
  }
  const groups =
    node.kind === 'list'
      ? [node.elements.map((element, i) => typed(element, node.optionalIndices.includes(i)))]
      : [node.entries.map(({ key }) => typed(key, false)), node.entries.map(({ value, optional }) => typed(value, optional))]
  for (const group of groups) {
    const wanted = group[0]?.type
    const odd = wanted && group.find(({ type }) => !typesEqual(type, wanted))
    if (odd) issues.push({ message: `expected type '${formatType(wanted)}' but found '${formatType(odd.type)}'`, offset: odd.part.offset })
  }
}
