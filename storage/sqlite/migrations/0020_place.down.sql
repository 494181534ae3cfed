SELECT 1; -- nothing
