import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bmp, type CraftedAttributes, craftedName, universal } from '#testing/craftedCertificates'
import { derIdentifier, derInside, derTag } from './der.ts'
import { encodeDer, encodeIdentifier } from './derEncoding.ts'
import { commonNameOf, organizationsOf, readCertificateName, readRequestName, subjectOfCertificate } from './distinguishedName.ts'
import { encodeKeptName } from './nameEncoding.ts'

const bytes = (text: string) => Buffer.from(text, 'latin1')
const masters = 'system:masters'
const readable: readonly { name: string; subject: readonly CraftedAttributes[]; user?: string; groups?: readonly string[] }[] = [
  { name: 'a subject without attributes', subject: [] },
  { name: 'an empty common name', subject: [[['CN', '']]] },
  { name: 'the last of two common names', subject: [[['CN', 'alice']], [['CN', 'system:node:x']]], user: 'system:node:x' },
  {
    name: 'the last of two common names in one set',
    subject: [
      [
        ['CN', 'alice'],
        ['CN', 'bob'],
      ],
    ],
    user: 'bob',
  },
  { name: 'an empty common name after another one', subject: [[['CN', 'alice']], [['CN', '']]], user: '' },
  {
    name: 'all organizations, in one set and in several',
    subject: [
      [['O', 'a']],
      [
        ['O', 'b'],
        ['CN', 'u'],
        ['O', 'c'],
      ],
    ],
    user: 'u',
    groups: ['a', 'b', 'c'],
  },
  { name: 'UTF8String', subject: [[['O', masters]]], groups: [masters] },
  { name: 'PrintableString', subject: [[['O', [derTag.printableString, bytes('a *&')]]]], groups: ['a *&'] },
  { name: 'IA5String', subject: [[['O', [derTag.ia5String, bytes(masters)]]]], groups: [masters] },
  { name: 'NumericString', subject: [[['O', [derTag.numericString, bytes('12 3')]]]], groups: ['12 3'] },
  { name: 'T61String', subject: [[['O', [derTag.t61String, bytes(`${masters}\xe9`)]]]], groups: [`${masters}é`] },
  { name: 'BMPString', subject: [[['O', bmp(masters)]]], groups: [masters] },
  { name: 'BMPString with a terminator', subject: [[['O', bmp(`${masters}\0`)]]], groups: [masters] },
  { name: 'a NUL in the middle', subject: [[['O', 'system:masters\0x']], [['CN', 'a\0b']]], user: 'a\0b', groups: ['system:masters\0x'] },
  { name: 'control characters', subject: [[['CN', 'a\u001b[2J\r\n']]], user: 'a\u001b[2J\r\n' },
  { name: 'a byte order mark', subject: [[['O', `\ufeff${masters}`]]], groups: [`\ufeff${masters}`] },
  { name: 'another attribute with the same value', subject: [[['2.5.4.11', masters]], [['2.5.4.266', masters]]] },
]
for (const { name, subject, user = '', groups = [] } of readable) {
  test(`AUN-02 the user and groups of a subject are read: ${name}`, () => {
    for (const readName of [readCertificateName, readRequestName]) {
      const read = readName(craftedName(subject))
      assert.ok(typeof read !== 'string', String(read))
      assert.deepEqual([commonNameOf(read), organizationsOf(read)], [user, groups])
    }
  })
}

for (const { name, value, tag } of [
  { name: 'UniversalString', value: universal(masters), tag: 28 },
  { name: 'OCTET STRING', value: [derTag.octetString, bytes(masters)], tag: 4 },
] as const)
  test(`AUN-02 a value of type ${name} makes a certificate invalid and is passed over in a request`, () => {
    for (const subject of [
      [[['CN', 'u']], [['O', value]]],
      [[['CN', 'u']], [['2.5.4.11', value]]],
    ] as const) {
      const der = craftedName(subject)
      assert.equal(readCertificateName(der), `x509: invalid RDNSequence: invalid attribute value: unsupported string type: ${tag}`)
      const read = readRequestName(der)
      assert.ok(typeof read !== 'string', String(read))
      assert.deepEqual([commonNameOf(read), organizationsOf(read)], ['u', []])
    }
  })

test('AUN-02 an issuer that cannot be read makes a certificate invalid', () => {
  const certificate = (issuer: Uint8Array) => {
    const number = encodeDer(derTag.integer, Uint8Array.of(1))
    return encodeDer(
      derTag.sequence,
      encodeDer(derTag.sequence, number, encodeDer(derTag.sequence), issuer, encodeDer(derTag.sequence), craftedName([[['CN', 'u']]])),
    )
  }
  assert.deepEqual(subjectOfCertificate(certificate(craftedName([[['CN', 'ca']]]))), [{ type: '2.5.4.3', value: 'u' }])
  assert.match(String(subjectOfCertificate(certificate(craftedName([[['CN', universal('ca')]]])))), /unsupported string type: 28/)
})

const invalid = 'x509: invalid RDNSequence: invalid attribute value: invalid'
const refused = [
  ['UTF-8 of a lone byte', craftedName([[['O', [derTag.utf8String, bytes('\xff')]]]]), `${invalid} UTF-8 string`],
  ['UTF-8 in too many bytes', craftedName([[['O', [derTag.utf8String, bytes('\xc1\xb3')]]]]), `${invalid} UTF-8 string`],
  ['PrintableString with @', craftedName([[['O', [derTag.printableString, bytes('a@')]]]]), `${invalid} PrintableString`],
  ['IA5String with a byte over 127', craftedName([[['O', [derTag.ia5String, bytes('\x80')]]]]), `${invalid} IA5String`],
  ['NumericString with a letter', craftedName([[['O', [derTag.numericString, bytes('a')]]]]), `${invalid} NumericString`],
  ['BMPString of an odd length', craftedName([[['O', [derTag.bmpString, bytes('\0a\0')]]]]), `${invalid} BMPString`],
  ['BMPString with a surrogate', craftedName([[['O', [derTag.bmpString, bytes('\xd8\0')]]]]), `${invalid} BMPString`],
  ['no sequence', encodeDer(derTag.set), 'x509: invalid RDNSequence'],
  ['two sequences', Buffer.concat([craftedName([]), craftedName([])]), 'x509: invalid RDNSequence'],
  ['a length in too many bytes', Uint8Array.of(0x30, 0x81, 0x00), 'x509: invalid RDNSequence'],
  ['an indefinite length', Uint8Array.of(0x30, 0x80, 0x00, 0x00), 'x509: invalid RDNSequence'],
] as const
for (const [name, der, fault] of refused)
  test(`AUN-02 a subject with a fault is refused: ${name}`, () => {
    for (const readName of [readCertificateName, readRequestName]) assert.equal(readName(der), fault)
  })

test('AUN-02 object identifiers have one form each', () => {
  for (const identifier of ['2.5.4.10', '1.3.6.1.4.1.57683.2', '2.999.1']) {
    const content = encodeIdentifier(identifier).subarray(2)
    assert.equal(derIdentifier(content), identifier)
  }
  // A leading zero, an arc that does not end, and an arc over 31 bits.
  for (const content of [[0x55, 0x80, 0x04], [0x55, 0x84], [0x55, 0x90, 0x80, 0x80, 0x80, 0x00], []])
    assert.equal(derIdentifier(Uint8Array.from(content)), undefined)
})

test('AUN-02 a signed name keeps the last common name and the groups, and no attribute of another kind', () => {
  const read = readRequestName(craftedName([[['CN', 'a']], [['1.3.6.1.4.1.57683.2', 'uid']], [['O', bmp('z*')]], [['O', 'b']], [['CN', 'c']]]))
  assert.ok(typeof read !== 'string')
  const kept = readCertificateName(encodeKeptName(read))
  assert.deepEqual(kept, [
    { type: '2.5.4.10', value: 'b' },
    { type: '2.5.4.10', value: 'z*' },
    { type: '2.5.4.3', value: 'c' },
  ])
  assert.equal(derInside(encodeKeptName([]), derTag.sequence)?.length, 0)
})
