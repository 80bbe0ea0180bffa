/**
 * The options of the static CPU policy (L3, pure): a table of names, how mature each is, and which cannot go together.
 * Upstream: kubelet/cm/cpumanager/policy_options.go (v1.36).
 */
import { bareMap } from '#base/bareMap'
import { type FeatureGateSettings, featureEnabled } from '#base/featureGates'

export interface StaticOptions {
  readonly fullPhysicalCpusOnly: boolean
  readonly distributeAcrossNuma: boolean
  readonly alignBySocket: boolean
  readonly distributeAcrossCores: boolean
  readonly strictReservation: boolean
  readonly alignByUncoreCache: boolean
}

const table: Readonly<Record<string, { readonly member: keyof StaticOptions; readonly level: 'Alpha' | 'Beta' | 'GA' }>> = bareMap({
  'full-pcpus-only': { member: 'fullPhysicalCpusOnly', level: 'GA' },
  'distribute-cpus-across-numa': { member: 'distributeAcrossNuma', level: 'Beta' },
  'align-by-socket': { member: 'alignBySocket', level: 'Alpha' },
  'distribute-cpus-across-cores': { member: 'distributeAcrossCores', level: 'Alpha' },
  'strict-cpu-reservation': { member: 'strictReservation', level: 'GA' },
  'prefer-align-cpus-by-uncorecache': { member: 'alignByUncoreCache', level: 'GA' },
})

export const noStaticOptions: StaticOptions = {
  fullPhysicalCpusOnly: false,
  distributeAcrossNuma: false,
  alignBySocket: false,
  distributeAcrossCores: false,
  strictReservation: false,
  alignByUncoreCache: false,
}

const booleans: Readonly<Record<string, boolean>> = bareMap({
  true: true,
  false: false,
  '1': true,
  '0': false,
  t: true,
  f: false,
  T: true,
  F: false,
  True: true,
  False: false,
})

/**
 * @param gates feature gates: alpha options need CPUManagerPolicyAlphaOptions, beta ones may be switched off by CPUManagerPolicyBetaOptions.
 * @throws Error in upstream's words.
 */
export function staticOptions(options: Readonly<Record<string, string>>, gates: FeatureGateSettings): StaticOptions {
  const result = { ...noStaticOptions }
  for (const [name, value] of Object.entries(options)) {
    const option = table[name]
    if (!option) throw new Error(`unknown CPU Manager Policy option: "${name}"`)
    const allowed = option.level === 'GA' || featureEnabled(gates, `CPUManagerPolicy${option.level}Options`)
    if (!allowed) throw new Error(`CPU Manager Policy ${option.level}-level Options not enabled, but option "${name}" provided`)
    const on = booleans[value]
    if (on === undefined) throw new Error(`bad value for option "${name}": strconv.ParseBool: parsing "${value}": invalid syntax`)
    result[option.member] = on
  }
  if (result.fullPhysicalCpusOnly && result.distributeAcrossCores) {
    throw new Error('static policy options FullPCPUsOnly and DistributeCPUsAcrossCores can not be used at the same time')
  }
  if (result.distributeAcrossNuma && result.distributeAcrossCores) {
    throw new Error('static policy options DistributeCPUsAcrossNUMA and DistributeCPUsAcrossCores can not be used at the same time')
  }
  for (const [clashes, other] of [
    [result.distributeAcrossCores, 'DistributeCPUsAcrossCores'],
    [result.distributeAcrossNuma, 'DistributeCPUsAcrossNUMA'],
  ] as const) {
    if (result.alignByUncoreCache && clashes) {
      throw new Error(`static policy options PreferAlignCpusByUncoreCache and ${other} can not be used at the same time`)
    }
  }
  return result
}
