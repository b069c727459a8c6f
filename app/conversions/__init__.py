"""Pure conversions of values: text, numbers, e-mail addresses, dates, URLs and topics."""
