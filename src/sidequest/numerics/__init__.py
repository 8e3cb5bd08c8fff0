"""Small, pure pieces of maths: numpy and scipy in, numbers out. No learner, no files, no torch."""
