import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labelsOf, labelsText } from './metricFamily.ts'

test('OBS-01 names and values of labels are read back from their text, whatever the values hold', () => {
  const values = ['', 'GET', 'a"b\\c\nd', 'x="y",z="', '\\n', 'é😀', '{}', '\\']
  const labels = Object.fromEntries(values.map((value, at) => [`label_${at}`, value]))
  assert.deepEqual(Object.fromEntries(labelsOf(labelsText(labels))), labels)
  assert.deepEqual(labelsOf(''), [])
  assert.equal(labelsText({ code: 200, path: 'a"' }), 'code="200",path="a\\""')
})
