/**
 * Compiles the regular expressions of a Corefile (L3), pure: RE2 as upstream's, which match in linear time. Loaded only for a Corefile that has some.
 * Upstream: CoreDNS plugin/rewrite, rules with regex and answer rules.
 */
import { patternSize } from '#cel/patternSize'
import { compileRegularExpression } from '#cel/regularExpression'
import { EvaluationError } from '#cel/values'
import type { CompilePattern } from './planRewrite.ts'

/** Instructions of all patterns of a Corefile: a question may try each of them. */
const maxInstructions = 1000

/** A group of the pattern in the other name. */
const group = /\{(\d+)\}/g

/** A compiler for one Corefile. */
export function createPatternCompiler(): CompilePattern {
  let left = maxInstructions
  return (from, to) => {
    left -= patternSize(from)
    if (left < 0) throw new Error(`the regular expressions have more than ${maxInstructions} instructions together`)
    const compiled = compile(from)
    const beyond = [...to.matchAll(group)].find(([, number]) => Number(number) > compiled.groupCount())
    if (beyond) throw new Error(`"${to}" uses the group ${beyond[0]}, which "${from}" does not have`)
    return (name) => {
      const matcher = compiled.matcher(name)
      return matcher.find() ? to.replace(group, (_text, number: string) => matcher.group(Number(number)) ?? '') : undefined
    }
  }
}

/** An EvaluationError is a value of CEL, not an Error. */
function compile(pattern: string) {
  try {
    return compileRegularExpression(pattern)
  } catch (error) {
    throw error instanceof EvaluationError ? new Error(error.message) : error
  }
}
