/**
 * Which levels and versions of the Pod Security Standards a namespace asks for (L1, pure): by its labels, else by the server's defaults.
 * Upstream: k8s.io/pod-security-admission/api/helpers.go (v0.36).
 */
import { type FieldError, FieldPath, fieldError } from '#api/machinery/fieldPath'

export const levels = ['privileged', 'baseline', 'restricted'] as const
export type Level = (typeof levels)[number]

export interface LevelVersion {
  readonly level: Level
  /** The minor version of v1. */
  readonly version: number | 'latest'
}

export const modes = ['enforce', 'audit', 'warn'] as const
export type Mode = (typeof modes)[number]
export type Policy = Readonly<Record<Mode, LevelVersion>>

export const labelPrefix = 'pod-security.kubernetes.io/'
export const privilegedLatest: LevelVersion = { level: 'privileged', version: 'latest' }

export const levelFault = `must be one of ${levels.join(', ')}`
export const versionFault = 'must be "latest" or "v1.x"'

export function parseLevel(text: string): Level | undefined {
  return levels.find((level) => level === text)
}

export function parseVersion(text: string): number | 'latest' | undefined {
  if (text === 'latest') return text
  return /^v1\.(0|[1-9][0-9]*)$/.test(text) ? Number(text.slice(3)) : undefined
}

/** `restricted:v1.30`. */
export function levelVersionText({ level, version }: LevelVersion): string {
  return `${level}:${versionText(version)}`
}

export function versionText(version: LevelVersion['version']): string {
  return version === 'latest' ? version : `v1.${version}`
}

export function sameLevelVersion(a: LevelVersion, b: LevelVersion): boolean {
  return a.level === b.level && a.version === b.version
}

/** Positive when `a` is the stricter one. */
export function compareLevels(a: Level, b: Level): number {
  return levels.indexOf(a) - levels.indexOf(b)
}

export function isFullyPrivileged(policy: Policy): boolean {
  return modes.every((mode) => policy[mode].level === 'privileged')
}

/** Whether two policies come to the same. */
export function areEquivalent(a: Policy, b: Policy): boolean {
  return modes.every((mode) => (a[mode].level === 'privileged' && b[mode].level === 'privileged') || sameLevelVersion(a[mode], b[mode]))
}

/** What a namespace with these labels asks for. There always is a policy: labels that cannot be read enforce `restricted:latest`, and audit and warn of nothing. */
export function policyToEvaluate(
  labels: Readonly<Record<string, string>> | undefined,
  defaults: Policy,
): { readonly policy: Policy; readonly faults: readonly FieldError[] } {
  if (!labels) return { policy: defaults, faults: [] }
  const faults: FieldError[] = []
  const path = FieldPath.of('metadata', 'labels')
  const read = <T>(label: string, parse: (text: string) => T | undefined, fault: string, otherwise: T, byDefault: T): T => {
    const text = labels[label]
    if (text === undefined) return byDefault
    const value = parse(text)
    if (value === undefined) faults.push(fieldError.invalid(path.key(label), text, fault))
    return value ?? otherwise
  }
  const [enforce, audit, warn] = modes.map((mode): LevelVersion => {
    const label = `${labelPrefix}${mode}`
    return {
      level: read<Level>(label, parseLevel, levelFault, mode === 'enforce' ? 'restricted' : 'privileged', defaults[mode].level),
      version: read<LevelVersion['version']>(`${label}-version`, parseVersion, versionFault, 'latest', defaults[mode].version),
    }
  }) as [LevelVersion, LevelVersion, LevelVersion]
  return { policy: { enforce, audit, warn: warnsAsEnforced(labels, enforce, warn) ? warnLike(labels, enforce, warn) : warn }, faults }
}

/** A namespace with a label to enforce and none to warn gets the enforced level as its level of warnings. */
function warnsAsEnforced(labels: Readonly<Record<string, string>>, enforce: LevelVersion, warn: LevelVersion): boolean {
  const said = labels[`${labelPrefix}enforce`]
  return said !== undefined && parseLevel(said) !== undefined && labels[`${labelPrefix}warn`] === undefined && compareLevels(enforce.level, warn.level) > 0
}

function warnLike(labels: Readonly<Record<string, string>>, enforce: LevelVersion, warn: LevelVersion): LevelVersion {
  return { level: enforce.level, version: labels[`${labelPrefix}warn-version`] === undefined ? enforce.version : warn.version }
}
