import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Service, ServiceSpec } from '#api/gen/types/core.v1'
import { parseIp } from '#api/machinery/ip'
import type { Frozen } from '#api/machinery/meta'
import { seededRandom } from '#base/random'
import { initFamilies } from './families.ts'
import { serviceRanges } from './ipAllocator.ts'
import { type IpFamily, IpRange } from './ipRange.ts'

test('SVC-01 a range tries each of its addresses once, those for static use last', () => {
  const range = IpRange.parse('192.168.7.9/25')
  assert.ok(range)
  assert.deepEqual([range.cidr, range.family, range.first], ['192.168.7.0/25', 'IPv4', '192.168.7.1'])
  const tried = [...range.candidates(seededRandom(3))]
  assert.equal(new Set(tried).size, 126)
  assert.deepEqual(new Set(tried.slice(-16)), new Set(Array.from({ length: 16 }, (_, i) => `192.168.7.${i + 1}`)))
  const has = (text: string) => {
    const ip = parseIp(text)
    return ip && [range.covers(ip), range.contains(ip)]
  }
  assert.deepEqual(['192.168.7.0', '192.168.7.1', '192.168.7.126', '192.168.7.127', '192.168.7.128'].map(has), [
    [true, false],
    [true, true],
    [true, true],
    [true, false],
    [false, false],
  ])
})

test('ranges of IPv6 are as good as endless; blocks without room are none', () => {
  const range = IpRange.parse('fd00:10:96::/64')
  const [one = ''] = range?.candidates(seededRandom(1)) ?? []
  assert.match(one, /^fd00:10:96::/)
  assert.deepEqual(['10.0.0.0/31', '10.0.0.0/32', 'x', '10.0.0.0'].map(IpRange.parse), [undefined, undefined, undefined, undefined])
  assert.deepEqual(
    serviceRanges('10.96.0.0/16,fd00::/112').map((found) => found.family),
    ['IPv4', 'IPv6'],
  )
  for (const text of ['10.0.0.0', '10.0.0.0/16,10.1.0.0/16', '10.0.0.0/16,fd00::/64,fd01::/64'])
    assert.throws(() => serviceRanges(text), /no usable service CIDR/)
})

const service = (spec: Partial<ServiceSpec>): Service => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 's', namespace: 'd' },
  spec: { type: 'ClusterIP', selector: { a: 'b' }, ...spec },
  status: {},
})
type FamilyCase = readonly [
  name: string,
  spec: Partial<ServiceSpec>,
  cluster: readonly IpFamily[],
  want: Partial<ServiceSpec> | string,
  old?: Partial<ServiceSpec>,
]
const single: readonly IpFamily[] = ['IPv4']
const dual: readonly IpFamily[] = ['IPv4', 'IPv6']
const four: Partial<ServiceSpec> = { ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' }
const both: Partial<ServiceSpec> = { ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'RequireDualStack' }
const families: readonly FamilyCase[] = [
  ['nothing said', {}, single, four],
  ['nothing said where both are', {}, dual, four],
  ['both preferred where one is', { ipFamilyPolicy: 'PreferDualStack' }, single, { ipFamilies: ['IPv4'], ipFamilyPolicy: 'PreferDualStack' }],
  ['both preferred where both are', { ipFamilyPolicy: 'PreferDualStack' }, dual, { ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'PreferDualStack' }],
  ['both required', { ipFamilyPolicy: 'RequireDualStack' }, dual, both],
  ['both required, the other first', { ...both, ipFamilies: ['IPv6'] }, dual, { ...both, ipFamilies: ['IPv6', 'IPv4'] }],
  ['two families mean both', { ipFamilies: ['IPv6', 'IPv4'] }, dual, { ...both, ipFamilies: ['IPv6', 'IPv4'] }],
  ['two addresses mean both', { clusterIPs: ['10.0.0.1', 'fd00::1'] }, dual, both],
  ['an address says its family', { clusterIPs: ['fd00::1'] }, dual, { ipFamilies: ['IPv6'], ipFamilyPolicy: 'SingleStack' }],
  [
    'both required where one is',
    { ipFamilyPolicy: 'RequireDualStack' },
    single,
    'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
  ],
  ['a family that is not there', { ipFamilies: ['IPv6'] }, single, 'spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster'],
  [
    'one required and two named',
    { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv4', 'IPv6'] },
    dual,
    'spec.ipFamilyPolicy: Invalid value: "SingleStack": must be RequireDualStack or PreferDualStack when multiple ipFamilies are specified',
  ],
  ['headless without a selector gets both anywhere', { clusterIPs: ['None'], selector: {} }, single, both],
  [
    'back to one',
    { ...both, ipFamilyPolicy: 'SingleStack', clusterIPs: ['10.0.0.1', 'fd00::1'] },
    dual,
    four,
    { ...both, clusterIPs: ['10.0.0.1', 'fd00::1'] },
  ],
  [
    'a preference stays as it was',
    { ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv4'], clusterIPs: ['10.0.0.1'] },
    dual,
    { ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv4'] },
    { ipFamilyPolicy: 'PreferDualStack', ipFamilies: ['IPv4'], clusterIPs: ['10.0.0.1'] },
  ],
]
for (const [name, spec, cluster, want, old] of families)
  test(`EXP-04 families of a service: ${name}`, () => {
    const obj = service(spec)
    const errors = initFamilies(obj, old && (service(old) as Frozen<Service>), cluster)
    const { ipFamilies, ipFamilyPolicy } = obj.spec
    if (typeof want === 'string')
      assert.deepEqual(
        errors.map(({ field, body }) => `${field}: ${body}`),
        [want],
      )
    else assert.deepEqual({ errors, ipFamilies, ipFamilyPolicy }, { errors: [], ...want })
  })
