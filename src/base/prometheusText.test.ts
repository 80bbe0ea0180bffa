import assert from 'node:assert/strict'
import { test } from 'node:test'
import { familyText, labelPair, sampleLine } from './prometheusText.ts'

test('OBS-01 labels and help are escaped, infinite values are spelled as Prometheus spells them', () => {
  const pairs = [labelPair('path', 'a"b\\c\nd'), labelPair('code', 200)]
  const lines = [sampleLine('m', pairs, Number.POSITIVE_INFINITY), sampleLine('m', [], Number.NEGATIVE_INFINITY), sampleLine('m', [], 1.5, 1700)]
  const text = familyText({ name: 'm', type: 'gauge', help: 'a "quoted"\\\nhelp' }, lines)
  assert.deepEqual(text.split('\n'), [
    '# HELP m a "quoted"\\\\\\nhelp',
    '# TYPE m gauge',
    'm{path="a\\"b\\\\c\\nd",code="200"} +Inf',
    'm -Inf',
    'm 1.5 1700',
    '',
  ])
})

test('OBS-01 a family without samples has no text', () => {
  assert.equal(familyText({ name: 'm', type: 'counter', help: 'help' }, []), '')
})
