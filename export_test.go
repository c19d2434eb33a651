package canopy

// MentionsPayment is mentionsPayment.
var MentionsPayment = mentionsPayment
