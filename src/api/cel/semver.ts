/**
 * CEL's library for semantic versions (L1). Upstream: apiserver/pkg/cel/library/semverlib.go (v1.36) with github.com/blang/semver/v4.
 */
import type { Library } from '#cel/declarations'
import { declare, member, overload } from '#cel/declarations'
import { opaqueType } from '#cel/types'
import type { CelInt } from '#cel/values'
import { EvaluationError, int, OpaqueValue } from '#cel/values'

interface Version {
  readonly numbers: readonly [major: bigint, minor: bigint, patch: bigint]
  /** The identifiers after the hyphen; whole numbers as such, since they compare by value and below words. */
  readonly preRelease: readonly (bigint | string)[]
}

export class SemverValue extends OpaqueValue {
  readonly typeName = 'kubernetes.Semver'
  readonly version: Version

  constructor(version: Version) {
    super()
    this.version = version
  }
  /** Build metadata does not count. */
  equals(other: OpaqueValue): boolean {
    return other instanceof SemverValue && compareVersions(this.version, other.version) === 0
  }
}

const order = (a: bigint | string, b: bigint | string): number => (a < b ? -1 : a > b ? 1 : 0)

function compareVersions(a: Version, b: Version): number {
  for (let i = 0; i < 3; i++) {
    const difference = order(a.numbers[i]!, b.numbers[i]!)
    if (difference !== 0) return difference
  }
  if (a.preRelease.length === 0 || b.preRelease.length === 0) return Number(a.preRelease.length === 0) - Number(b.preRelease.length === 0)
  for (let i = 0; i < Math.min(a.preRelease.length, b.preRelease.length); i++) {
    const [x, y] = [a.preRelease[i]!, b.preRelease[i]!]
    const difference = typeof x === typeof y ? order(x, y) : typeof x === 'bigint' ? -1 : 1
    if (difference !== 0) return difference
  }
  return Math.sign(a.preRelease.length - b.preRelease.length)
}

const maxNumber = 2n ** 64n - 1n

function numberOf(text: string, part: string): bigint {
  if (!/^\d+$/.test(text)) throw new EvaluationError(`Invalid character(s) found in ${part.toLowerCase()} number ${JSON.stringify(text)}`)
  if (/^0\d/.test(text)) throw new EvaluationError(`${part} number must not contain leading zeroes ${JSON.stringify(text)}`)
  const value = BigInt(text)
  if (value > maxNumber) throw new EvaluationError(`strconv.ParseUint: parsing ${JSON.stringify(text)}: value out of range`)
  return value
}

function preReleaseOf(text: string): bigint | string {
  if (text === '') throw new EvaluationError('Prerelease is empty')
  if (/^\d+$/.test(text)) {
    if (/^0\d/.test(text)) throw new EvaluationError(`Numeric PreRelease version must not contain leading zeroes ${JSON.stringify(text)}`)
    return BigInt(text)
  }
  if (!/^[0-9A-Za-z-]+$/.test(text)) throw new EvaluationError(`Invalid character(s) found in prerelease ${JSON.stringify(text)}`)
  return text
}

/** Strict semantic versioning 2.0. @throws EvaluationError */
function parseVersion(text: string): Version {
  if (text === '') throw new EvaluationError('Version string empty')
  const parts = text.split('.')
  if (parts.length < 3) throw new EvaluationError('No Major.Minor.Patch elements found')
  const [major, minor] = parts as [string, string]
  const numbers = [numberOf(major, 'Major'), numberOf(minor, 'Minor')] as const
  const rest = parts.slice(2).join('.')
  const plus = rest.indexOf('+')
  const build = plus < 0 ? undefined : rest.slice(plus + 1)
  const beforeBuild = plus < 0 ? rest : rest.slice(0, plus)
  const hyphen = beforeBuild.indexOf('-')
  const patch = numberOf(hyphen < 0 ? beforeBuild : beforeBuild.slice(0, hyphen), 'Patch')
  const preRelease =
    hyphen < 0
      ? []
      : beforeBuild
          .slice(hyphen + 1)
          .split('.')
          .map(preReleaseOf)
  for (const identifier of build?.split('.') ?? []) {
    if (identifier === '') throw new EvaluationError('Build meta data is empty')
    if (!/^[0-9A-Za-z-]+$/.test(identifier)) throw new EvaluationError(`Invalid character(s) found in build meta data ${JSON.stringify(identifier)}`)
  }
  return { numbers: [...numbers, patch], preRelease }
}

/** What the lenient form accepts besides: a leading v, leading zeros, and missing numbers where nothing follows them. */
function normalized(text: string): string {
  const [major = '', minor, ...more] = text.replace(/^v/, '').split('.')
  const parts = minor === undefined ? [major] : more.length === 0 ? [major, minor] : [major, minor, more.join('.')]
  const trimmed = parts.map((part) => (part.length > 1 ? part.replace(/^0+/, '').replace(/^(?!\d)/, '0') : part))
  if (trimmed.length < 3 && /[+-]/.test(trimmed.at(-1)!)) throw new EvaluationError('short version cannot contain PreRelease/Build meta data')
  while (trimmed.length < 3) trimmed.push('0')
  return trimmed.join('.')
}

export const toSemver = (text: string, lenient = false): SemverValue => new SemverValue(parseVersion(lenient ? normalized(text) : text))

function isSemver(text: string, lenient = false): boolean {
  try {
    toSemver(text, lenient)
    return true
  } catch (error) {
    if (error instanceof EvaluationError) return false
    throw error
  }
}

const compared = (a: SemverValue, b: SemverValue): number => compareVersions(a.version, b.version)
const part =
  (index: 0 | 1 | 2) =>
  ({ version }: SemverValue): CelInt =>
    int(BigInt.asIntN(64, version.numbers[index]))

const type = 'kubernetes.Semver'
const pair = `(${type}, ${type})`

export const semverLibrary: Library = {
  typeNames: [opaqueType(type)],
  functions: [
    declare('semver', overload('string_to_semver', `(string) -> ${type}`, toSemver), overload('string_bool_to_semver', `(string, bool) -> ${type}`, toSemver)),
    declare('isSemver', overload('is_semver_string', '(string) -> bool', isSemver), overload('is_semver_string_bool', '(string, bool) -> bool', isSemver)),
    declare(
      'isGreaterThan',
      member('semver_is_greater_than', `${pair} -> bool`, (a: SemverValue, b: SemverValue) => compared(a, b) > 0),
    ),
    declare(
      'isLessThan',
      member('semver_is_less_than', `${pair} -> bool`, (a: SemverValue, b: SemverValue) => compared(a, b) < 0),
    ),
    declare('compareTo', member('semver_compare_to', `${pair} -> int`, compared)),
    declare('major', member('semver_major', `(${type}) -> int`, part(0))),
    declare('minor', member('semver_minor', `(${type}) -> int`, part(1))),
    declare('patch', member('semver_patch', `(${type}) -> int`, part(2))),
  ],
}
